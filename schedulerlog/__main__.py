"""``python -m schedulerlog``: how this project's processes start each other, wherever it is installed."""

from schedulerlog import main

main()
