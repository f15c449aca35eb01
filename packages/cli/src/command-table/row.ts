import type { Command } from 'commander'
import type { ServeDeps } from '../commands/serve.ts'
import type { ExitName } from '../exit.ts'
import type { OptionRule } from '../option-rules.ts'

/** A command. Its module is loaded when it runs, as `--version` and `--help` need none. */
export interface CommandRow {
  /** Its words: `audit tail`. The row of its parent comes first. */
  readonly name: string
  readonly does: string
  /** Adds its arguments and options. */
  readonly define: (command: Command) => unknown
  /** Absent if only its subcommands run. */
  readonly run?: (command: Command, deps: ServeDeps) => Promise<ExitName>
  /** Which options it needs with others, and which exclude each other. */
  readonly rules?: readonly OptionRule[]
  /** A hint for somebody who gives an unknown option. */
  readonly optionHint?: string
  /** Whether it runs for the parent's words alone. */
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
