from coag.awareness import InjectionBlock, InjectionItem
from coag.awareness.injection import merge_blocks


def _block(heading: str, priority: int, **urgencies: float) -> InjectionBlock:
    items = tuple(InjectionItem(text=text, urgency=u) for text, u in urgencies.items())
    return InjectionBlock(heading=heading, priority=priority, items=items)


def test_blocks_of_one_heading_become_one_and_an_item_is_shown_once() -> None:
    merged = merge_blocks(
        [_block("GOALS", 2, a=0.1, b=0.5), _block("ERRORS", 3, e=1.0), _block("GOALS", 1, a=0.9)]
    )
    assert merged == (_block("GOALS", 1, a=0.9, b=0.5), _block("ERRORS", 3, e=1.0))
