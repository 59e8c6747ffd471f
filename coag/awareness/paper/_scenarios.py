"""The four-turn scenarios of the paper, as the hand-written analyses that the adapters take.

The paper tells the messages of the talk and what its state held after each turn (sections 6.1,
6.2 and 6.5); of the work on software it tells four lines and a table (section 5.2). The analyses
themselves it does not print. These are ours: what the messages say, in the adapters' schemas.
"""

from __future__ import annotations

from coag.awareness.adapters import (
    CodingAnalysis,
    ConversationAnalysis,
    ConversationEntityType,
    MentionedEntity,
    RaisedError,
    Sentiment,
    StatedGoal,
)

_SCRAPER = "I want to learn Python and build a web scraper. Can you help me learn Python?"
_CARBONARA = "By the way, how do you make pasta carbonara?"
_LIBRARY = "Oh wait, going back to Python - what library for scraping?"
_ERRORS = "BeautifulSoup is not working! Errors everywhere!"

_BEGINNING = ConversationAnalysis(
    message=_SCRAPER,
    topics=("Python", "web scraping"),
    entities=(MentionedEntity(name="Python", type=ConversationEntityType.CONCEPT),),
    goals=(
        StatedGoal(description="Learn Python"),
        StatedGoal(description="Build a web scraper"),
    ),
    questions=("Can you help me learn Python?",),
)

CONVERSATION = (
    _BEGINNING,
    ConversationAnalysis(
        message=_CARBONARA,
        topics=("cooking", "pasta carbonara"),
        goals=(StatedGoal(description="Make pasta carbonara"),),
        questions=("How do you make pasta carbonara?",),
    ),
    ConversationAnalysis(
        message=_LIBRARY,
        topics=("Python", "web scraping"),
        questions=("What library for scraping?",),
        references_previous=True,
    ),
    ConversationAnalysis(
        message=_ERRORS,
        topics=("web scraping", "BeautifulSoup"),
        goals=(StatedGoal(description="Get BeautifulSoup to work"),),
        sentiment=Sentiment.FRUSTRATED,
    ),
)
"""The talk of section 6.1, read as sections 6.2 and 5.1 tell it (tables 5 and 14)."""

CONVERSATION_RESTORED = (
    _BEGINNING,
    ConversationAnalysis(
        message=_CARBONARA,
        topics=("cooking", "pasta carbonara"),
        questions=("How do you make pasta carbonara?",),
    ),
    ConversationAnalysis(
        message=_LIBRARY,
        topics=("scraping libraries",),
        questions=("What library for scraping?",),
        references_previous=True,
    ),
    ConversationAnalysis(
        message=_ERRORS,
        topics=("BeautifulSoup", "scraping libraries"),
        goals=(StatedGoal(description="Get BeautifulSoup to work"),),
        sentiment=Sentiment.FRUSTRATED,
    ),
)
"""The same messages, read so that the state is that of table 12 and of its checkpoint.

The question about carbonara states no goal, and the one about a library is about libraries,
which were no topic before: a second shift, as listing 1 shows one.
"""

CODING = (
    CodingAnalysis(
        message=(
            "I am setting up a FastAPI project with SQLAlchemy on PostgreSQL: main.py, models.py, "
            "database.py, DATABASE_URL in the environment, and GET /users to begin with."
        ),
        files=("main.py", "models.py", "database.py"),
        libraries=("FastAPI", "SQLAlchemy"),
        services=("PostgreSQL",),
        endpoints=("GET /users",),
        configs=("DATABASE_URL",),
        goals=(
            StatedGoal(description="Set up the FastAPI project"),
            StatedGoal(description="Define the user model", parent="Set up the FastAPI project"),
            StatedGoal(description="Serve GET /users", depends_on=("Define the user model",)),
        ),
        questions=("How should the project be laid out?",),
    ),
    CodingAnalysis(
        message=(
            "I get a ConnectionRefusedError: PostgreSQL runs by docker-compose.yml. Why is the "
            "connection refused?"
        ),
        services=("PostgreSQL",),
        configs=("docker-compose.yml",),
        errors=(RaisedError(name="ConnectionRefusedError", message="connection to port 5432"),),
        goals=(StatedGoal(description="Connect to the database"),),
        questions=("Why is the connection refused?",),
    ),
    CodingAnalysis(
        message="That fixed the connection. But now GET /users raises EmptyResultSet.",
        endpoints=("GET /users",),
        errors=(RaisedError(name="EmptyResultSet", message="GET /users finds no rows"),),
        fixed=("ConnectionRefusedError",),
        completed=("Connect to the database",),
        answered=("Why is the connection refused?",),
    ),
    CodingAnalysis(
        message=(
            "We also need authentication: JWT with PyJWT and passlib, an auth.py with "
            "get_current_user, and POST /login. Which routes should be protected?"
        ),
        files=("auth.py",),
        libraries=("PyJWT", "passlib"),
        endpoints=("POST /login",),
        functions=("get_current_user",),
        concepts=("JWT",),
        goals=(StatedGoal(description="Add user authentication"),),
        questions=("Which routes should be protected?",),
    ),
)
"""The work on software of section 5.2: setup, connection error, fix with regression, new scope."""
