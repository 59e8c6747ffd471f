"""How a server draws the answers of a language model."""

from __future__ import annotations

from autogen_core.models import ChatCompletionClient

_SEED = "seed"


def sampled_by(model: ChatCompletionClient, chance: int) -> ChatCompletionClient:
    """The same client with a seed of sampling, where its kind of client has one.

    Clients of OpenAI's API have one, and with them those of most local servers. Any other is given
    back as it is, e.g. a scripted one: what its server draws by is then not in our hands.

    Args:
        model: The client, with which nothing was asked yet.
        chance: The seed.
    """
    schema = getattr(model, "component_config_schema", None)
    if _SEED not in getattr(schema, "model_fields", {}):
        return model
    described = model.dump_component()
    config = {**described.config, _SEED: chance}
    return ChatCompletionClient.load_component(described.model_copy(update={"config": config}))
