import type { ApprovalDecision } from '@toolgate/core/stores'
import { APPROVAL_DECISIONS } from '@toolgate/core/words'
import { Command, Option } from 'commander'
import type { TargetOptions } from './client/target.ts'
import type { ApprovalsOptions, DecideOptions } from './commands/approvals.ts'
import type { AuditOptions, AuditQueryOptions, AuditTailOptions } from './commands/audit.ts'
import type { AuditProveOptions, AuditVerifyOptions, CheckProofOptions } from './commands/audit-verify.ts'
import type { CheckOptions } from './commands/check.ts'
import type { HaltOptions, ReleaseOptions } from './commands/halts.ts'
import type { NeedsOptions } from './commands/needs.ts'
import type { AcceptPinOptions, PinsOptions } from './commands/pins.ts'
import type { StartGateway } from './commands/run-gateway.ts'
import type { ServeOptions } from './commands/serve.ts'
import type { ToolsOptions } from './commands/tools.ts'
import type { TryOptions } from './commands/try.ts'
import type { WhyOptions } from './commands/why.ts'
import { EXITS, type ExitName } from './exit.ts'
import type { Io } from './io.ts'
import { asking, DEFAULT_CONFIG, listing, naming, reading, timeAgo, verifying, wholeNumber } from './options.ts'
import { reportError } from './report-error.ts'
import type { StopSignals } from './stop-signals.ts'

// A command is loaded when it runs: `--version` and `--help` need none of them.

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
    exit = await reportError(error, deps.io, { json: asksForJson(args) })
  }
  return EXITS[exit].code
}

const ERRORS_AS_JSON = 'for programs: errors as JSON'
const DECISION_HELP: Readonly<Record<ApprovalDecision, string>> = {
  approve: 'approve a waiting call, with exactly this input, once',
  reject: 'reject a waiting call',
  revoke: 'take back an approval that was not used yet',
}

/** Read before the arguments are parsed: what cannot be parsed is an error too. */
function asksForJson(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return args.slice(0, end === -1 ? args.length : end).includes('--json')
}

function createProgram({ io, version, signals, start }: ProgramDeps, end: (exit: ExitName) => void): Command {
  const program = new Command('toolgate')
    .description('Decides which tools an AI agent sees and runs, in front of real MCP servers.')
    .version(version)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
      // Reported in the one form of all errors, see `reportError`.
      outputError: () => {},
    })
    .addHelpText('after', `\nExit codes:\n${exitLines()}`)

  program
    .command('try')
    .description('run the quickstart: real MCP servers, demo keys, the console')
    .option('--port <port>', 'where to listen; default: PORT, or 8787')
    .option('--json', ERRORS_AS_JSON)
    .action(async (options: TryOptions) =>
      end(await (await import('./commands/try.ts')).tryCommand(options, { io, signals, start })),
    )
  program
    .command('serve')
    .description('run the gateway of a configuration')
    .option('--config <file>', 'the configuration', DEFAULT_CONFIG)
    .option('--port <port>', 'where to listen; default: PORT, or what the configuration says')
    .option('--json', ERRORS_AS_JSON)
    .action(async (options: ServeOptions) =>
      end(await (await import('./commands/serve.ts')).serveCommand(options, { io, signals, start })),
    )
  program
    .command('check')
    .description('say what is wrong with a configuration, or that nothing is; starts nothing')
    .argument('[file]', 'the configuration', DEFAULT_CONFIG)
    .option('--json', 'for programs')
    .action(async (file: string, options: CheckOptions) =>
      end(await (await import('./commands/check.ts')).checkCommand(file, options, io)),
    )
  asking(program.command('tools'))
    .description('list what a caller sees; without one, how much each of them does')
    .option('--as <user>', 'a caller of the configuration')
    .option('--caller <json>', 'any other caller')
    .option('--app <app>', 'within an app of the configuration')
    .option('--all', 'hidden tools too, with the reason')
    .action(async (options: ToolsOptions) => end(await (await import('./commands/tools.ts')).toolsCommand(options, io)))
  asking(program.command('why'))
    .description('explain the decision about one tool; exit code 1 where it is not visible')
    .argument('<tool>', 'its id, such as files:read_file')
    .option('--as <user>', 'a caller of the configuration')
    .option('--caller <json>', 'any other caller')
    .option('--app <app>', 'within an app of the configuration')
    .action(async (tool: string, options: WhyOptions) =>
      end(await (await import('./commands/why.ts')).whyCommand(tool, options, io)),
    )
  asking(program.command('needs'))
    .description(
      'list what must be started or set for the tools of an app; exit code 1 where something is not available',
    )
    .argument('[app]', 'an app of the configuration; default: all groups')
    .action(async (app: string | undefined, options: NeedsOptions) =>
      end(await (await import('./commands/needs.ts')).needsCommand(app, options, io)),
    )

  const approvals = asking(program.command('approvals')).description(
    'list the calls that wait for a person, and decide',
  )
  listing(asking(approvals.command('list', { isDefault: true })))
    .description('list them with their inputs; by default those that wait')
    .action(async (_: ApprovalsOptions, command: Command) =>
      end(await (await import('./commands/approvals.ts')).approvalsCommand(command.optsWithGlobals(), io)),
    )
  for (const decision of APPROVAL_DECISIONS)
    asking(approvals.command(decision))
      .description(DECISION_HELP[decision])
      .argument('<id>', 'as "toolgate approvals" shows it')
      .option('--reason <text>', 'why; the model is told it when its call is refused')
      .action(async (id: string, _: DecideOptions, command: Command) =>
        end(
          await (
            await import('./commands/approvals.ts')
          ).decideCommand({ id, decision }, command.optsWithGlobals(), io),
        ),
      )

  const pins = asking(program.command('pins'))
    .description('list the tools whose definition has changed, or holds what nobody sees')
    .option('--all', 'those that are as they were, too')
    .action(async (options: PinsOptions) => end(await (await import('./commands/pins.ts')).pinsCommand(options, io)))
  asking(pins.command('accept'))
    .description('show what a definition has become; with its hash, accept it')
    .argument('<tool>', 'its id, such as files:read_file')
    .option('--hash <hash>', 'of the definition that was looked at; its first 12 digits do')
    .action(async (tool: string, _: AcceptPinOptions, command: Command) =>
      end(await (await import('./commands/pins.ts')).acceptPinCommand(tool, command.optsWithGlobals(), io)),
    )

  naming(asking(program.command('halt')))
    .description('stop what the options name together, now: calls that come, that wait, and that run')
    .requiredOption('--reason <text>', 'why; the model is told it')
    .option('--force', 'also where no tool or no configured agent has the name now')
    .action(async (options: HaltOptions) => end(await (await import('./commands/halts.ts')).haltCommand(options, io)))
  naming(asking(program.command('release')))
    .description('end a halt, named as it was halted, or by its id')
    .option('--id <id>', 'as "toolgate halts" shows it')
    .action(async (options: ReleaseOptions) =>
      end(await (await import('./commands/halts.ts')).releaseCommand(options, io)),
    )
  asking(program.command('halts'))
    .description('list what is halted')
    .action(async (options: TargetOptions & { json?: boolean }) =>
      end(await (await import('./commands/halts.ts')).haltsCommand(options, io)),
    )

  const audit = program.command('audit').description('read what was attempted')
  reading(audit.command('tail'))
    .description('print the newest records, and each new one until it is stopped')
    .option('-n, --lines <n>', 'how many to begin with', wholeNumber(0, 1000), 10)
    .option('--no-follow', 'end after those')
    .action(async (options: AuditTailOptions) =>
      end(await (await import('./commands/audit.ts')).auditTailCommand(options, io, signals)),
    )
  reading(audit.command('query'))
    .description('print the records that match, newest first')
    .option('--limit <n>', 'at most so many; default 100', wholeNumber(1, 1000))
    .option('--before <seq>', 'only older records', wholeNumber(0, Number.MAX_SAFE_INTEGER))
    .option('--after <seq>', 'only newer records', wholeNumber(0, Number.MAX_SAFE_INTEGER))
    .action(async (options: AuditQueryOptions) =>
      end(await (await import('./commands/audit.ts')).auditQueryCommand(options, io)),
    )
  reading(audit.command('export'))
    .description('print all records that match, oldest first, as JSON lines')
    .addOption(new Option('--from <time>', 'the same as --since').argParser(timeAgo))
    .addOption(new Option('--to <time>', 'the same as --until').argParser(timeAgo))
    .action(async ({ from, to, ...options }: AuditOptions & { from?: number; to?: number }) =>
      end(
        await (
          await import('./commands/audit.ts')
        ).auditExportCommand(
          { ...options, ...(from === undefined ? {} : { since: from }), ...(to === undefined ? {} : { until: to }) },
          io,
        ),
      ),
    )
  asking(audit.command('policy'))
    .description('print the policy that decided, by the policy_hash of a record')
    .argument('<hash>', 'the hash, or its first 8 digits or more')
    .option('--file <file>', 'read this audit file (SQLite or JSON lines) instead of asking a gateway')
    .action(async (hash: string, options: AuditOptions) =>
      end(await (await import('./commands/audit-policy.ts')).auditPolicyCommand(hash, options, io)),
    )
  verifying(audit.command('verify'))
    .description('check an audit against its chain and its checkpoints; the exit code says what is wrong')
    .option('--signed <seq>', 'fail where no checkpoint signs this record', wholeNumber(1, Number.MAX_SAFE_INTEGER))
    .option('--json', 'for programs')
    .action(async (options: AuditVerifyOptions) =>
      end(await (await import('./commands/audit-verify.ts')).auditVerifyCommand(options, io)),
    )
  verifying(audit.command('prove'))
    .description('print the proof that the records of a call are in the audit, one JSON line each')
    .requiredOption('--call <id>', 'its tool_call_id')
    .option('--json', ERRORS_AS_JSON)
    .action(async (options: AuditProveOptions) =>
      end(await (await import('./commands/audit-verify.ts')).auditProveCommand(options, io)),
    )
  audit
    .command('check-proof')
    .description('check proofs that "audit prove" printed; needs no audit')
    .argument('<file>', 'the proofs')
    .requiredOption('--public-key <file>', 'the public key that is trusted, in PEM')
    .option('--json', ERRORS_AS_JSON)
    .action(async (file: string, options: CheckProofOptions) =>
      end((await import('./commands/audit-verify.ts')).auditCheckProofCommand(file, options, io)),
    )
  return program
}

function exitLines(): string {
  return Object.values(EXITS)
    .map(({ code, means }) => `  ${String(code).padEnd(4)} ${means}`)
    .join('\n')
}
