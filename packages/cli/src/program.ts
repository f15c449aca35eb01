import { Command, CommanderError } from 'commander'
import { COMMANDS } from './command-table/index.ts'
import type { ServeDeps } from './commands/serve.ts'
import { CliError, EXITS, type ExitName } from './exit.ts'
import { examplesOf, helpOf } from './help.ts'
import { checkOptions } from './option-rules.ts'
import type { Io } from './io.ts'
import { reportError } from './report-error.ts'

interface ProgramDeps extends ServeDeps {
  readonly version: string
}

/** Runs the command of the arguments and returns its exit code. Prints errors, and never throws. */
export async function runProgram(args: readonly string[], deps: ProgramDeps): Promise<number> {
  let exit: ExitName = 'ok'
  const program = createProgram(deps, (result) => {
    exit = result
  })
  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    exit = await endOf(error, args, deps.io)
  }
  return EXITS[exit].code
}

/** Reports an error. The parser also throws after printing help or the version; that is not reported. */
async function endOf(error: unknown, args: readonly string[], io: Io): Promise<ExitName> {
  if (!(error instanceof CommanderError)) return reportError(error, io, { json: wantsJson(args) })
  if (error.exitCode === 0) return 'ok'
  if (error.code === 'commander.help') return 'usage'
  return reportError(usageOf(error, args), io, { json: wantsJson(args) })
}

/**
 * Converts an error of the parser to our form: `unknown option '--polcy'`, with "Did you mean --policy?" as its hint.
 */
function usageOf(error: CommanderError, args: readonly string[]): CliError {
  const [, message = '', meant] = /^(?:error: )?(.*?)(?:\n\((.*)\))?$/s.exec(error.message) ?? []
  const known = COMMANDS.find(({ name }) => name === args[0])
  const advice = {
    'commander.unknownOption': known?.optionHint,
    'commander.excessArguments': known?.wordHint,
    'commander.unknownCommand': meant === undefined ? '"toolgate --help" lists the commands.' : undefined,
  }[error.code]
  const hint = [meant, advice].filter((line) => line !== undefined).join('\n')
  return new CliError('usage', message, { ...(hint && { hint }), cause: error })
}

/**
 * Whether the output is JSON. It is checked before the arguments are parsed, because parse errors are reported in the
 * same form.
 */
function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return args.slice(0, end === -1 ? args.length : end).includes('--json')
}

function createProgram(deps: ProgramDeps, end: (exit: ExitName) => void): Command {
  const { io, version } = deps
  const program = new Command('toolgate')
    .description('Decides which tools an AI agent sees and runs, in front of real MCP servers.')
    .version(version)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
      // `reportError` reports all errors in one form.
      outputError: () => {},
    })
    .helpCommand(false)
  program.helpInformation = () => helpOf(program)

  for (const { name, does, define, run, rules = [], isDefault = false } of COMMANDS) {
    const words = name.split(' ')
    const word = words.pop() ?? name
    const command = parentOf(program, words)
      .command(word, { isDefault })
      .description(does)
      .addHelpText('after', examplesOf(name))
    define(command)
    if (run)
      command.action(async () => {
        checkOptions(command, rules)
        end(await run(command, deps))
      })
  }
  return program
}

function parentOf(program: Command, words: readonly string[]): Command {
  return words.reduce((parent, word) => {
    const found = parent.commands.find((command) => command.name() === word)
    if (!found) throw new TypeError(`there is no command ${word}`)
    return found
  }, program)
}
