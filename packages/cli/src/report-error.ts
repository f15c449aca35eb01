import { CliError, EXITS, type ExitName } from './exit.ts'
import { type Io, painter, printable, printJson, printLine } from './io.ts'

/** An error as every command prints it to stderr: `error  <message>` for people, `{ "error": … }` for programs. */
interface ErrorReport {
  readonly exit: ExitName
  /** A code for programs: a code from the guide's errors, or the name of the exit code. */
  readonly code: string
  readonly message: string
  readonly hint?: string
  /** The problems of a configuration, each with its position. */
  readonly problems?: readonly object[]
}

/** Reports an error and returns the name of the exit code. Never throws. */
export async function reportError(error: unknown, io: Io, { json }: { readonly json: boolean }): Promise<ExitName> {
  const { report, print } = await describeError(error, io)
  if (json) printJson(io.stderr, { error: { ...report, exit: EXITS[report.exit].code } })
  else if (print) print()
  else printReport(report, io)
  return report.exit
}

function printReport({ message, hint }: ErrorReport, io: Io): void {
  printLine(io.stderr, `${painter(io.stderr, io.env)('red', 'error')}  ${message}`)
  if (hint !== undefined) printLine(io.stderr, hint)
}

async function describeError(error: unknown, io: Io): Promise<{ report: ErrorReport; print?: () => void }> {
  if (error instanceof CliError) {
    const { exit, code = exit, message, hint } = error
    return { report: { exit, code, message, ...(hint === undefined ? {} : { hint }) } }
  }
  // This is loaded only now. A command that threw one of these errors has already loaded it.
  const { FAULTS, ToolgateError } = await import('@toolgate/core')
  const { ConfigFileError } = await import('@toolgate/gateway')
  const { printProblems } = await import('./commands/check.ts')
  if (error instanceof ConfigFileError) {
    const { message, problems } = error
    const report = { exit: 'usage', code: 'config_invalid', message, problems } as const
    return { report, print: () => printProblems(error, io) }
  }
  if (error instanceof ToolgateError) {
    const { code, message } = error
    const exit = FAULTS[code].exit === EXITS.usage.code ? 'usage' : 'no'
    return { report: { exit, code, message: printable(message) } }
  }
  const { message, stack = message } = error instanceof Error ? error : new Error(String(error))
  const report = { exit: 'no', code: 'internal', message } as const
  return { report, print: () => printReport({ ...report, message: stack }, io) }
}
