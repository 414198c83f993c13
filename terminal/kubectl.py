"""``kubectl schedulerlog``: what people ask, without the services. kubectl finds the program by its name."""

from process.lazy_commands import lazy_application
from terminal.commands import QUESTIONS

app = lazy_application("Why a pod waits, or why it is where it is; what would have to change.", QUESTIONS)


def run() -> None:
    app(prog_name="kubectl schedulerlog")
