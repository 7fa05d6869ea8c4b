"""How good `clearhead diff` is: pairs with one planted difference, and equal pairs in other styles."""
