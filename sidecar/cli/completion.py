"""``throttle-sidecar completion``: the script that completes commands in a shell.

The scripts are click's own. They call the program, which completes the names of commands without
importing the commands.
"""

import click
from click.shell_completion import get_completion_class


@click.command(
    "completion",
    epilog="""\b
Examples:
  source <(throttle-sidecar completion bash)
  throttle-sidecar completion zsh > ~/.zfunc/_throttle-sidecar
  throttle-sidecar completion fish > ~/.config/fish/completions/throttle-sidecar.fish
""",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    Load it from the shell's start-up file, as in the examples. TAB then completes commands and
    options.
    """
    root = ctx.find_root()
    program = root.info_name or root.command.name or ""
    complete = get_completion_class(shell)
    if complete is None:
        raise click.UsageError(f"no completion for {shell}")
    variable = f"_{program}_COMPLETE".replace("-", "_").upper()
    click.echo(complete(root.command, {}, program, variable).source())
