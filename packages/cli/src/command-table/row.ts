import type { Command } from 'commander'
import type { ServeDeps } from '../commands/serve.ts'
import type { ExitName } from '../exit.ts'
import type { OptionRule } from '../option-rules.ts'

/** A command. Its module is loaded when the command runs, because `--version` and `--help` need no module. */
export interface CommandRow {
  /** The command's words: `audit tail`. The row of its parent comes first. */
  readonly name: string
  readonly does: string
  /** Adds its arguments and options. */
  readonly define: (command: Command) => unknown
  /** Runs the command. Absent if only its subcommands run. */
  readonly run?: (command: Command, deps: ServeDeps) => Promise<ExitName>
  /** The options that require or exclude others. */
  readonly rules?: readonly OptionRule[]
  /** A hint for an unknown option. */
  readonly optionHint?: string
  /** A hint for a word too many. */
  readonly wordHint?: string
  /** Whether it runs when only its parent's words are given. */
  readonly isDefault?: boolean
}

/** Returns the row of a command with at most one argument, which `run` receives after the options. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- commander types its options by such a parameter
export function row<Options extends object, Argument extends string | undefined = string>(
  name: string,
  does: string,
  define: CommandRow['define'],
  run: (options: Options, deps: ServeDeps, argument: Argument) => Promise<ExitName>,
  rules: readonly OptionRule[] = [],
): CommandRow {
  return {
    name,
    does,
    define,
    rules,
    run: (command, deps) => run(command.optsWithGlobals<Options>(), deps, command.processedArgs[0]),
  }
}
