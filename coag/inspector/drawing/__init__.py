"""Pictures: a view in, SVG out, to be put into a page as it is.

What comes out holds no script, no style, no link to elsewhere and no id that another drawing
has, so that it may stand in a page whose security policy forbids all of them, and in a file by
itself. Foreign text in it is cleaned and short. Colours are the page's: `currentColor` and the
custom properties in `PROPERTIES`. matplotlib is imported here and nowhere else.
"""

from .canvas import PROPERTIES, Cleaning, plain_elements
from .charts import belief_svg, belief_svgs, cost_svg
from .course import course_svg
from .goals import goals_svg
from .why import why_svg

__all__ = [
    "belief_svg",
    "belief_svgs",
    "cost_svg",
    "why_svg",
    "goals_svg",
    "course_svg",
    "PROPERTIES",
    "Cleaning",
    "plain_elements",
]
