from recollect.api.inspector.marked_text import MarkedPiece, pieces_of


def test_marked_passages_are_pieces_of_their_own() -> None:
    assert pieces_of("I live in Oslo.", [(10, 14)]) == [
        MarkedPiece("I live in ", False),
        MarkedPiece("Oslo", True),
        MarkedPiece(".", False),
    ]
    assert pieces_of("Oslo", [(0, 4)]) == [MarkedPiece("Oslo", True)]
    assert pieces_of("Oslo", []) == [MarkedPiece("Oslo", False)]
    assert pieces_of("", [(0, 4)]) == []


def test_places_may_overlap_touch_or_lie_outside() -> None:
    assert pieces_of("abcdef", [(3, 5), (0, 2), (1, 4)]) == [MarkedPiece("abcde", True), MarkedPiece("f", False)]
    assert pieces_of("abcdef", [(0, 2), (2, 3)]) == [MarkedPiece("abc", True), MarkedPiece("def", False)]
    assert pieces_of("abc", [(-5, 1), (2, 99), (7, 9), (2, 1)]) == [
        MarkedPiece("a", True),
        MarkedPiece("b", False),
        MarkedPiece("c", True),
    ]
