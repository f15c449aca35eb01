import { AUDIT_EVENTS, AUDIT_OUTCOMES, FAULTS, ToolgateError } from '@toolgate/core'
import { ConfigFileError } from '@toolgate/gateway'
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import {
  auditExportCommand,
  type AuditOptions,
  type AuditQueryOptions,
  auditQueryCommand,
  type AuditTailOptions,
  auditTailCommand,
} from './commands/audit.ts'
import {
  auditCheckProofCommand,
  auditProveCommand,
  type AuditProveOptions,
  auditVerifyCommand,
  type AuditVerifyOptions,
  type CheckProofOptions,
} from './commands/audit-verify.ts'
import { type CheckOptions, checkCommand, printProblems } from './commands/check.ts'
import { haltCommand, type HaltOptions, haltsCommand, releaseCommand, type ReleaseOptions } from './commands/halts.ts'
import type { StartGateway } from './commands/run-gateway.ts'
import { acceptPinCommand, type AcceptPinOptions, pinsCommand, type PinsOptions } from './commands/pins.ts'
import { serveCommand, type ServeOptions } from './commands/serve.ts'
import { toolsCommand, type ToolsOptions } from './commands/tools.ts'
import { tryCommand, type TryOptions } from './commands/try.ts'
import { whyCommand, type WhyOptions } from './commands/why.ts'
import type { TargetOptions } from './client/target.ts'
import { CliError, EXITS, type ExitName } from './exit.ts'
import { type Io, painter, printLine } from './io.ts'
import type { StopSignals } from './stop-signals.ts'

export interface ProgramDeps {
  readonly io: Io
  readonly version: string
  readonly signals: StopSignals
  readonly start: StartGateway
}

/** Runs the command that the arguments name. Gives its exit code; prints, never throws. */
export async function runProgram(args: readonly string[], deps: ProgramDeps): Promise<number> {
  let exit: ExitName = 'ok'
  const program = createProgram(deps, (result) => {
    exit = result
  })
  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    exit = reportError(error, deps.io)
  }
  return EXITS[exit].code
}

const DEFAULT_CONFIG = 'toolgate.yaml'

function createProgram({ io, version, signals, start }: ProgramDeps, end: (exit: ExitName) => void): Command {
  const program = new Command('toolgate')
    .description('Decides which tools an AI agent sees and runs, in front of real MCP servers.')
    .version(version)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
    })
    .addHelpText('after', `\nExit codes:\n${exitLines()}`)

  program
    .command('try')
    .description('run the quickstart: real MCP servers, demo keys, the console')
    .option('--port <port>', 'where to listen; default: PORT, or 8787')
    .action(async (options: TryOptions) => end(await tryCommand(options, { io, signals, start })))
  program
    .command('serve')
    .description('run the gateway of a configuration')
    .option('--config <file>', 'the configuration', DEFAULT_CONFIG)
    .option('--port <port>', 'where to listen; default: PORT, or what the configuration says')
    .action(async (options: ServeOptions) => end(await serveCommand(options, { io, signals, start })))
  program
    .command('check')
    .description('say what is wrong with a configuration, or that nothing is; starts nothing')
    .argument('[file]', 'the configuration', DEFAULT_CONFIG)
    .option('--json', 'for programs')
    .action(async (file: string, options: CheckOptions) => end(await checkCommand(file, options, io)))
  asking(program.command('tools'))
    .description('list what a caller sees; without one, how much each of them does')
    .option('--as <user>', 'a caller of the configuration')
    .option('--caller <json>', 'any other caller')
    .option('--app <app>', 'within an app of the configuration')
    .option('--all', 'hidden tools too, with the reason')
    .action(async (options: ToolsOptions) => end(await toolsCommand(options, io)))
  asking(program.command('why'))
    .description('explain the decision about one tool; exit code 1 where it is not visible')
    .argument('<tool>', 'its id, such as files:read_file')
    .option('--as <user>', 'a caller of the configuration')
    .option('--caller <json>', 'any other caller')
    .option('--app <app>', 'within an app of the configuration')
    .action(async (tool: string, options: WhyOptions) => end(await whyCommand(tool, options, io)))

  const pins = asking(program.command('pins'))
    .description('list the tools whose definition has changed, or holds what nobody sees')
    .option('--all', 'those that are as they were, too')
    .action(async (options: PinsOptions) => end(await pinsCommand(options, io)))
  asking(pins.command('accept'))
    .description('show what a definition has become; with its hash, accept it')
    .argument('<tool>', 'its id, such as files:read_file')
    .option('--hash <hash>', 'of the definition that was looked at; its first 12 digits do')
    .action(async (tool: string, _: AcceptPinOptions, command: Command) =>
      end(await acceptPinCommand(tool, command.optsWithGlobals(), io)),
    )

  naming(asking(program.command('halt')))
    .description('stop what the options name together, now: calls that come, that wait, and that run')
    .requiredOption('--reason <text>', 'why; the model is told it')
    .action(async (options: HaltOptions) => end(await haltCommand(options, io)))
  naming(asking(program.command('release')))
    .description('end a halt, named as it was halted, or by its id')
    .option('--id <id>', 'as "toolgate halts" shows it')
    .action(async (options: ReleaseOptions) => end(await releaseCommand(options, io)))
  asking(program.command('halts'))
    .description('list what is halted')
    .action(async (options: TargetOptions & { json?: boolean }) => end(await haltsCommand(options, io)))

  const audit = program.command('audit').description('read what was attempted')
  reading(audit.command('tail'))
    .description('print the newest records, and each new one until it is stopped')
    .option('-n, --lines <n>', 'how many to begin with', wholeNumber(0, 1000), 10)
    .option('--no-follow', 'end after those')
    .action(async (options: AuditTailOptions) => end(await auditTailCommand(options, io, signals)))
  reading(audit.command('query'))
    .description('print the records that match, newest first')
    .option('--limit <n>', 'at most so many; default 100', wholeNumber(1, 1000))
    .option('--before <seq>', 'only older records', wholeNumber(0, Number.MAX_SAFE_INTEGER))
    .option('--after <seq>', 'only newer records', wholeNumber(0, Number.MAX_SAFE_INTEGER))
    .action(async (options: AuditQueryOptions) => end(await auditQueryCommand(options, io)))
  reading(audit.command('export'))
    .description('print all records that match, oldest first, as JSON lines')
    .addOption(new Option('--from <time>', 'the same as --since').argParser(timeAgo))
    .addOption(new Option('--to <time>', 'the same as --until').argParser(timeAgo))
    .action(async ({ from, to, ...options }: AuditOptions & { from?: number; to?: number }) =>
      end(
        await auditExportCommand(
          { ...options, ...(from === undefined ? {} : { since: from }), ...(to === undefined ? {} : { until: to }) },
          io,
        ),
      ),
    )
  verifying(audit.command('verify'))
    .description('check an audit against its chain and its checkpoints; the exit code says what is wrong')
    .option('--signed <seq>', 'fail where no checkpoint signs this record', wholeNumber(1, Number.MAX_SAFE_INTEGER))
    .option('--json', 'for programs')
    .action(async (options: AuditVerifyOptions) => end(await auditVerifyCommand(options, io)))
  verifying(audit.command('prove'))
    .description('print the proof that the records of a call are in the audit, one JSON line each')
    .requiredOption('--call <id>', 'its tool_call_id')
    .action(async (options: AuditProveOptions) => end(await auditProveCommand(options, io)))
  audit
    .command('check-proof')
    .description('check proofs that "audit prove" printed; needs no audit')
    .argument('<file>', 'the proofs')
    .requiredOption('--public-key <file>', 'the public key that is trusted, in PEM')
    .action((file: string, options: CheckProofOptions) => end(auditCheckProofCommand(file, options, io)))
  return program
}

/** The options that name what is halted. */
function naming(command: Command): Command {
  return command
    .option('--user <user>', 'of every tenant, unless one is named too')
    .option('--session <session>', 'one session')
    .option('--tool <selector>', 'such as files:write_file, browser:* or group:web')
    .option('--tenant <tenant>', 'one tenant')
    .option('--all', 'everything; of your tenant, where you have one')
}

/** The options of a command that asks a running gateway. */
function asking(command: Command): Command {
  return command
    .option('--url <url>', 'the gateway; default: TOOLGATE_URL, or http://127.0.0.1:8787')
    .option('--key <key>', 'a console key; default: TOOLGATE_KEY')
    .option('--config <file>', "a configuration that has the gateway's address and its console key")
    .option('--json', 'for programs: the bodies of the HTTP API')
}

function reading(command: Command): Command {
  return asking(command)
    .option('--file <file>', 'read this audit file (SQLite or JSON lines) instead of asking a gateway')
    .option('--tool <id>', 'only of this tool')
    .option('--user <user>', 'only of this user')
    .option('--session <session>', 'only of this session')
    .addOption(new Option('--event <event>', 'only this event').choices(AUDIT_EVENTS))
    .addOption(new Option('--outcome <outcome>', 'only attempts that ended so').choices(AUDIT_OUTCOMES))
    .option('--since <time>', 'only of this time and later: 2026-11-21T09:00:00Z, or 2h for two hours ago', timeAgo)
    .option('--until <time>', 'only earlier than this time', timeAgo)
}

/** The options of a command that reads an audit's files. */
function verifying(command: Command): Command {
  return command
    .option('--file <file>', 'the audit (SQLite or JSON lines); default: the one of the configuration')
    .option('--config <file>', 'the configuration', DEFAULT_CONFIG)
    .option('--checkpoints <file>', 'default: <file>.checkpoints')
    .option('--public-key <file>', 'the public key that is trusted, in PEM; default: <checkpoints>.pub')
}

const UNITS_MS: ReadonlyMap<string, number> = new Map([
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

/** Reads a time: RFC 3339, or how long ago. Gives milliseconds since 1970. */
function timeAgo(text: string): number {
  const ago = /^(\d{1,9})([smhd])$/.exec(text)
  if (ago) return Date.now() - Number(ago[1]) * (UNITS_MS.get(ago[2] as string) as number)
  const ms = /^\d{4}-\d{2}-\d{2}(?:T[\d:.]+(?:Z|[+-]\d{2}:\d{2}))?$/.test(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(ms)) return ms
  throw new InvalidArgumentError('It is a time such as 2026-11-21T09:00:00Z or 2026-11-21, or 90s, 15m, 2h or 7d ago.')
}

function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`It is a whole number from ${min} to ${max}.`)
  }
}

function exitLines(): string {
  return Object.values(EXITS)
    .map(({ code, means }) => `  ${String(code).padEnd(4)} ${means}`)
    .join('\n')
}

function reportError(error: unknown, io: Io): ExitName {
  // Commander has printed its own; help and version are no errors.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 'ok' : 'usage'
  if (error instanceof ConfigFileError) {
    printProblems(error, io)
    return 'usage'
  }
  const paint = painter(io.stderr, io.env)
  const { message, stack } = error instanceof Error ? error : new Error(String(error))
  const isOurs = error instanceof CliError || error instanceof ToolgateError
  printLine(io.stderr, `${paint('red', 'error')}  ${isOurs ? message : (stack ?? message)}`)
  if (error instanceof CliError && error.hint !== undefined) printLine(io.stderr, error.hint)
  if (error instanceof CliError) return error.exit
  return error instanceof ToolgateError && FAULTS[error.code].exit === EXITS.usage.code ? 'usage' : 'no'
}
