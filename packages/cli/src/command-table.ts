import { APPROVAL_DECISIONS, APPROVAL_STATUSES, AUDIT_EVENTS, AUDIT_OUTCOMES, ITEM_KINDS } from '@toolgate/core/words'
import { Command, InvalidArgumentError, Option } from 'commander'
import type { TargetOptions } from './client.ts'
import type { AddOptions } from './commands/add.ts'
import type { CompareApprovalOptions } from './commands/approvals-compare.ts'
import type { ApprovalsOptions, DecideOptions } from './commands/approvals.ts'
import type { AuditOpenOptions } from './commands/audit-open.ts'
import type { AuditProveOptions, AuditVerifyOptions, CheckProofOptions } from './commands/audit-verify.ts'
import type { AuditExportOptions, AuditOptions, AuditQueryOptions, AuditTailOptions } from './commands/audit.ts'
import type { BackupOptions } from './commands/backup.ts'
import type { CompareOptions } from './commands/compare.ts'
import type { CheckOptions } from './commands/check.ts'
import type { HaltOptions, ReleaseOptions } from './commands/halts.ts'
import type { CallOptions } from './commands/call.ts'
import type { LabelsOptions } from './commands/labels.ts'
import type { LimitsOptions } from './commands/limits.ts'
import type { LogsOptions } from './commands/logs.ts'
import type { DoctorOptions } from './commands/doctor.ts'
import type { ConnectOptions } from './commands/connect.ts'
import type { ImportOptions } from './commands/import.ts'
import type { InitOptions } from './commands/init.ts'
import type { CreateKeyOptions, KeysOptions } from './commands/keys.ts'
import type { AcceptPinOptions, PinsOptions } from './commands/pins.ts'
import type { AcceptReplicasOptions, ReplicasOptions } from './commands/replicas.ts'
import type { PolicyTestsOptions } from './commands/policy-tests.ts'
import type { ReloadCommandOptions } from './commands/reload.ts'
import type { RestoreOptions } from './commands/restore.ts'
import type { RunsOptions } from './commands/runs.ts'
import type { ServeDeps, ServeOptions } from './commands/serve.ts'
import type { SnapshotOptions } from './commands/snapshot.ts'
import type { SuggestCommandOptions } from './commands/suggest.ts'
import type { StdioOptions } from './commands/stdio.ts'
import type { NeedsOptions, ToolsOptions } from './commands/tools.ts'
import type { TryOptions } from './commands/try.ts'
import type { Since, WhatIfCommandOptions } from './commands/what-if.ts'
import type { WhyOptions } from './commands/why.ts'
import type { ExitName } from './exit.ts'

/** A command. Its module is loaded when it runs, as `--version` and `--help` need none. */
export interface CommandRow {
  /** Its words: `audit tail`. The row of its parent comes first. */
  readonly name: string
  readonly does: string
  /** Adds its arguments and options. */
  readonly define: (command: Command) => unknown
  /** Absent if only its subcommands run. */
  readonly run?: (command: Command, deps: ServeDeps) => Promise<ExitName>
  /** What to do about an unknown option. */
  readonly optionHint?: string
  /** Whether it runs for the parent's words alone. */
  readonly isDefault?: boolean
}

const DEFAULT_CONFIG = 'toolgate.yaml'
const ERRORS_AS_JSON = 'for programs: errors as JSON'
const TOOL_HELP = 'its id, such as files:read_file'
const ITEM_HELP = `${TOOL_HELP}, resource:files:file:///a.md or prompt:git:review`
const FILE_HELP = 'read this audit file (SQLite or JSON lines) instead of asking a gateway'
const MAX_SEQ = Number.MAX_SAFE_INTEGER

/** Every command, in the order of the help. */
export const COMMANDS: readonly CommandRow[] = [
  row(
    'try',
    'run the quickstart: real MCP servers, demo keys, the console',
    (command) =>
      command.option('--port <port>', 'where to listen; default: PORT, or 8787').option('--json', ERRORS_AS_JSON),
    async (options: TryOptions, deps) => (await import('./commands/try.ts')).tryCommand(options, deps),
  ),
  row(
    'init',
    'write a configuration with two roles, and their keys',
    (command) => command.argument('[folder]', 'where', '.').option('--json', 'for programs'),
    async (options: InitOptions, { io }, folder) =>
      (await import('./commands/init.ts')).initCommand(folder, options, io),
  ),
  {
    name: 'add',
    does: 'add a server to the configuration: a command after "--", or a URL',
    optionHint: 'Put "--" before the command, such as: toolgate add files -- npx -y <package>',
    define: (command) =>
      command
        .argument('<name>', 'the namespace of its tools, such as files')
        .argument('[target...]', 'its URL, or "--" and its command')
        .option('--config <file>', 'the configuration', DEFAULT_CONFIG)
        .option(
          '--env <name[=value]>',
          'a variable of the command; a name alone is taken from the environment',
          repeated,
        )
        .option('--header <name: value>', 'a header for the URL; ${VAR} is taken from the environment', repeated)
        .option('--shared', 'one process for all users, as it keeps nothing of them')
        .option('--replace', 'replace a server of that name')
        .option('--no-start', 'do not start it to tag its tools')
        .option('--json', 'for programs'),
    run: async (command, deps) => {
      const [name, target] = command.processedArgs as [string, readonly string[]]
      return (await import('./commands/add.ts')).addCommand(name, target, command.optsWithGlobals<AddOptions>(), deps)
    },
  },
  row(
    'import',
    "show how a client's servers would move to the configuration; with --apply, move them",
    (command) =>
      clientOptions(command)
        .option('--apply', 'write both files; what was there is kept')
        .option('--keep', "leave the client's file as it is")
        .option('--no-start', 'do not start the servers to tag their tools'),
    async (options: ImportOptions, deps, client) =>
      (await import('./commands/import.ts')).importCommand(client, options, deps),
  ),
  row(
    'connect',
    "write the gateway into a client's file",
    (command) =>
      clientOptions(command)
        .option('--app <app>', 'the tools of an app only')
        .option('--http', 'connect over HTTP, with the key in the file, instead of starting "toolgate stdio"')
        .option('--url <url>', 'over HTTP: the gateway; default: where the configuration listens')
        .option('--key <key>', "over HTTP: the agent's key; default: the one that init made")
        .option('--dry-run', 'only show it'),
    async (options: ConnectOptions, { io }, client) =>
      (await import('./commands/connect.ts')).connectCommand(client, options, io),
  ),
  row(
    'serve',
    'run the gateway of a configuration',
    (command) =>
      command
        .option('--config <file>', 'the configuration', DEFAULT_CONFIG)
        .option('--port <port>', 'where to listen; default: PORT, or what the configuration says')
        .option('--json', ERRORS_AS_JSON),
    async (options: ServeOptions, deps) => (await import('./commands/serve.ts')).serveCommand(options, deps),
  ),
  row(
    'stdio',
    'speak MCP on stdin and stdout, for clients that start a command',
    (command) =>
      command
        .option('--url <url>', 'a running gateway; default: TOOLGATE_URL, or http://127.0.0.1:8787')
        .option('--key <key>', "an agent's key; default: TOOLGATE_KEY")
        .option('--config <file>', 'run a gateway of this configuration in this process instead')
        .option('--as <user>', 'with --config: the caller; default: the only one')
        .option('--app <app>', 'the tools of an app only')
        .option('--json', ERRORS_AS_JSON),
    async (options: StdioOptions, deps) => (await import('./commands/stdio.ts')).stdioCommand(options, deps),
  ),
  row(
    'doctor',
    'say what is wrong and what mends it: files, port, servers, clocks, policy, clients; exit code 1 for an error',
    (command) =>
      command
        .option(
          '--config <file>',
          'the configuration; default: toolgate.yaml, or where that is not there, a running gateway',
        )
        .option('--url <url>', 'the running gateway; default: TOOLGATE_URL, or http://127.0.0.1:8787')
        .option('--key <key>', 'a console key; default: TOOLGATE_KEY')
        .option('--no-start', 'do not start the servers')
        .option('--json', 'for programs'),
    async (options: DoctorOptions, deps) => (await import('./commands/doctor.ts')).doctorCommand(options, deps),
  ),
  row(
    'check',
    'check a configuration and print its problems; starts nothing',
    (command) =>
      command
        .argument('[file]', 'the configuration', DEFAULT_CONFIG)
        .option('--servers', 'start its servers, too, for warnings about what they offer')
        .option('--json', 'for programs'),
    async (options: CheckOptions, deps, file) =>
      (await import('./commands/check.ts')).checkCommand(file, options, deps),
  ),
  {
    name: 'test',
    does: 'test the policy with files of tests, *.test.yaml; starts nothing; exit code 1 if one fails',
    define: (command) =>
      command
        .argument('[files...]', 'files, or folders of them; default: those beside the configuration')
        .option('--config <file>', 'the configuration of files that name none; default: toolgate.yaml beside them')
        .option('--live', 'start the servers, and test on what they offer now')
        .option('--audit', 'ask the running gateway, too, which clauses real calls have reached')
        .option('--since <time>', 'with --audit: calls from then on; default: the last 30 days', timeAgo)
        .option('--url <url>', 'with --audit: the gateway; default: TOOLGATE_URL, or where the configuration listens')
        .option('--key <key>', 'with --audit: a console key; default: TOOLGATE_KEY')
        .option('--tap', 'for programs: the Test Anything Protocol')
        .option('--junit', 'for programs: the XML of JUnit')
        .option('--json', 'for programs'),
    run: async (command, deps) => {
      const [files] = command.processedArgs as [readonly string[]]
      const { policyTestsCommand } = await import('./commands/policy-tests.ts')
      const options = command.optsWithGlobals<Omit<PolicyTestsOptions, 'since'> & { since?: number }>()
      return policyTestsCommand(files, { ...options, since: options.since ?? timeAgo('30d') }, deps)
    },
  },
  {
    name: 'compare',
    does: 'say whether a configuration grants no more than another: yes, no with a counterexample, or unknown; exit code 1 unless yes',
    define: (command) =>
      command
        .argument('<before>', 'the configuration that is compared with')
        .argument('[after]', 'the other one', DEFAULT_CONFIG)
        .option('--catalog <file>', 'the tools: what "toolgate snapshot" has written', 'catalog.json')
        .option('--json', 'for programs'),
    run: async (command, { io }) => {
      const files = command.processedArgs as [string, string]
      return (await import('./commands/compare.ts')).compareCommand(
        files,
        command.optsWithGlobals<CompareOptions>(),
        io,
      )
    },
  },
  row(
    'snapshot',
    'start the servers, and write what they offer as data, for tests',
    (command) =>
      command
        .option('--config <file>', 'the configuration', DEFAULT_CONFIG)
        .option('-o, --output <file>', 'write it to this file; default: print it')
        .option('--json', ERRORS_AS_JSON),
    async (options: SnapshotOptions, deps) => (await import('./commands/snapshot.ts')).snapshotCommand(options, deps),
  ),
  row(
    'suggest',
    'print the least that recorded calls show to be needed, for each role, as a policy to review, and which of these calls it would refuse',
    (command) =>
      command
        .option('--config <file>', 'the configuration in force', DEFAULT_CONFIG)
        .option(
          '--since <time>',
          'calls from then on: 2026-11-21T09:00:00Z, or 30d; default: the last seven days',
          timeAgo,
        )
        .option('--role <role>', 'only callers with this role')
        .option('--catalog <file>', 'a snapshot; default: start the servers, and take what they offer')
        .option('--file <file>', FILE_HELP)
        .option('--url <url>', 'the gateway; default: TOOLGATE_URL, or where the configuration listens')
        .option('--key <key>', 'a console key; default: TOOLGATE_KEY')
        .option('--json', 'for programs'),
    async (options: Omit<SuggestCommandOptions, 'since'> & { since?: number }, deps) => {
      const { suggestCommand } = await import('./commands/suggest.ts')
      return suggestCommand({ ...options, since: options.since ?? timeAgo('7d') }, deps)
    },
  ),
  row(
    'what-if',
    'say what the rules of another configuration would mean: who gains and loses tools, which recorded calls would have ended otherwise',
    (command) =>
      command
        .requiredOption('--policy <file>', 'the other configuration')
        .option('--config <file>', 'the configuration in force', DEFAULT_CONFIG)
        .option('--since <time>', 'calls from then on: 2026-11-21T09:00:00Z, or 7d for the last seven days', sinceOf)
        .option('--catalog <file>', 'a snapshot; default: start the servers, and take what they offer')
        .option('--file <file>', FILE_HELP)
        .option('--resume <file>', 'keep what was counted in this file, and go on from it after a stop')
        .option('--url <url>', 'the gateway; default: TOOLGATE_URL, or where the configuration listens')
        .option('--key <key>', 'a console key; default: TOOLGATE_KEY')
        .option('--json', 'for programs'),
    async (options: Omit<WhatIfCommandOptions, 'since'> & { since?: Since }, deps) => {
      const { whatIfCommand } = await import('./commands/what-if.ts')
      return whatIfCommand({ ...options, since: options.since ?? sinceOf('7d') }, deps)
    },
  ),
  row(
    'tools',
    'list the tools that a caller sees; without a caller, how many each one sees',
    (command) =>
      whoseOptions(gatewayOptions(command))
        .option('--all', 'hidden ones too, with the reason')
        .addOption(new Option('--kind <kind>', 'what to list; default: tool').choices(ITEM_KINDS)),
    async (options: ToolsOptions, { io }) => (await import('./commands/tools.ts')).toolsCommand(options, io),
  ),
  row(
    'labels',
    'propose labels, tags and addressees of tools, for rules about what a run has read; print them as YAML',
    (command) =>
      gatewayOptions(command)
        .option(
          '--file <file>',
          'read tools from this file (JSON: the answer of tools/list) instead of asking a gateway',
        )
        .option('--server <name>', 'with --file: the name of their server in the configuration', 'server')
        .option('--as <user>', 'whose tools; default: those of the first caller')
        .option('--all', 'labelled tools too')
        .option('--yaml', 'only the YAML'),
    async (options: LabelsOptions, { io }) => (await import('./commands/labels.ts')).labelsCommand(options, io),
  ),
  row(
    'why',
    'explain the decision about one tool, resource or prompt, or about a call of it; exit code 1 if it is not visible, or the call refused',
    (command) =>
      whoseOptions(gatewayOptions(command).argument('<tool>', ITEM_HELP))
        .option('--input <json>', 'of a call with this input, which is not made: JSON, @file, or - for stdin')
        .option('--history <yaml>', 'of a call after this has happened: a file, YAML or JSON, or - for stdin'),
    async (options: WhyOptions, { io }, tool) => (await import('./commands/why.ts')).whyCommand(tool, options, io),
  ),
  row(
    'call',
    'call a tool as an agent does; exit code 1 if it is refused or fails',
    (command) =>
      command
        .argument('<tool>', `${TOOL_HELP}, or its name for clients`)
        .option('--input <json>', 'its input: JSON, @file, or - for stdin; default: {}')
        .option('--as <user>', 'a user of the configuration whose key is in it or beside it')
        .option('--key <key>', "an agent's key; default: TOOLGATE_KEY")
        .option('--url <url>', 'the gateway; default: TOOLGATE_URL, or where the configuration listens')
        .option('--config <file>', 'the configuration; default: toolgate.yaml')
        .option('--app <app>', 'within an app')
        .option('--json', 'for programs: the result as MCP has it'),
    async (options: CallOptions, deps, tool) => (await import('./commands/call.ts')).callCommand(tool, options, deps),
  ),
  row(
    'logs',
    'print the last lines of a server: its stderr, and what the gateway logged of it',
    (command) =>
      gatewayOptions(command)
        .argument('<server>', 'its name in the configuration')
        .option('-n, --lines <n>', 'how many to begin with', wholeNumber(1, 500), 50)
        .option('-f, --follow', 'go on with new ones until it is stopped'),
    async (options: LogsOptions, { io, signals }, server) =>
      (await import('./commands/logs.ts')).logsCommand(server, options, io, signals),
  ),
  row(
    'needs',
    "list the dependencies of an app's tools; exit code 1 if one is not available",
    (command) => gatewayOptions(command).argument('[app]', 'an app of the configuration; default: all groups'),
    async (options: NeedsOptions, { io }, app: string | undefined) =>
      (await import('./commands/tools.ts')).needsCommand(app, options, io),
  ),
  { name: 'approvals', does: 'list the calls that wait for a person, and decide', define: gatewayOptions },
  {
    ...row(
      'approvals list',
      'list approvals with their inputs; by default the pending ones',
      (command) => approvalFilters(gatewayOptions(command)),
      async (options: ApprovalsOptions, { io }) =>
        (await import('./commands/approvals.ts')).approvalsCommand(options, io),
    ),
    isDefault: true,
  },
  ...APPROVAL_DECISIONS.map((decision) =>
    row(
      `approvals ${decision}`,
      {
        approve: 'approve a waiting call, with exactly this input, once',
        reject: 'reject a waiting call',
        revoke: 'revoke an approval that was not used yet',
      }[decision],
      (command) =>
        gatewayOptions(command)
          .argument('<id>', 'as "toolgate approvals" shows it')
          .option('--reason <text>', 'the reason; the model sees it when its call is refused'),
      async (options: DecideOptions, { io }, id) =>
        (await import('./commands/approvals.ts')).decideCommand({ id, decision }, options, io),
    ),
  ),
  row(
    'approvals compare',
    'read what a waiting call would change, and show the difference',
    (command) => gatewayOptions(command).argument('<id>', 'as "toolgate approvals" shows it'),
    async (options: CompareApprovalOptions, { io }, id) =>
      (await import('./commands/approvals-compare.ts')).compareApprovalCommand(id, options, io),
  ),
  row(
    'pins',
    'list the tools whose definition has changed or holds hidden content',
    (command) => gatewayOptions(command).option('--all', 'unchanged ones, too'),
    async (options: PinsOptions, { io }) => (await import('./commands/pins.ts')).pinsCommand(options, io),
  ),
  row(
    'pins accept',
    'show the changes of a definition; with its hash, accept it',
    (command) =>
      gatewayOptions(command)
        .argument('<tool>', TOOL_HELP)
        .option('--hash <hash>', 'of the definition that you reviewed; 12 digits are enough'),
    async (options: AcceptPinOptions, { io }, tool) =>
      (await import('./commands/pins.ts')).acceptPinCommand(tool, options, io),
  ),
  { name: 'keys', does: 'list, make and revoke API keys, without a restart', define: gatewayOptions },
  {
    ...row(
      'keys list',
      'list keys: their users, apps, expiry and last use',
      gatewayOptions,
      async (options: KeysOptions, { io }) => (await import('./commands/keys.ts')).keysCommand(options, io),
    ),
    isDefault: true,
  },
  row(
    'keys create',
    'make a key for a user of the configuration; it is printed once',
    (command) =>
      gatewayOptions(command)
        .requiredOption('--user <user>', 'whose it is, as the configuration names them')
        .addOption(new Option('--for <use>', 'what it opens; default: mcp').choices(['mcp', 'console', 'host']))
        .option('--tenant <tenant>', 'the tenant of the user')
        .option('--like <id>', 'the key in the file whose rights it has, if the user has keys with different ones')
        .option('--apps <apps>', 'only these apps, with commas between them')
        .option('--expires <when>', 'a date, or a time from now such as 90d or 12h; default: never')
        .option('--id <id>', 'its name; default: a random one')
        .option(
          '--save',
          'keep it beside the configuration, where commands of that folder find it, and do not print it',
        ),
    async (options: CreateKeyOptions, { io }) => (await import('./commands/keys.ts')).createKeyCommand(options, io),
  ),
  row(
    'keys revoke',
    'end a key that was made, with its sessions, streams and logins',
    (command) => gatewayOptions(command).argument('<id>', 'as "toolgate keys" shows it'),
    async (options: KeysOptions, { io }, id) => (await import('./commands/keys.ts')).revokeKeyCommand(id, options, io),
  ),
  row(
    'limits',
    'what is left of budgets, as limits with a cost count them',
    (command) => gatewayOptions(command).option('--limit <n>', 'at most this many; default 100', wholeNumber(1, 1000)),
    async (options: LimitsOptions, { io }) => (await import('./commands/limits.ts')).limitsCommand(options, io),
  ),
  { name: 'runs', does: 'list and revoke the runs that hosts have started', define: gatewayOptions },
  {
    ...row(
      'runs list',
      'list the runs that go on: for whom, by whom, their calls and labels, until when, and what narrows them',
      (command) =>
        gatewayOptions(command)
          .option('--user <user>', 'only those for this user')
          .option('--label <label>', 'only those with this label, such as untrusted')
          .option('--all', 'also those that have ended, and sessions of clients, of the last week')
          .option('--limit <n>', 'at most this many; default 100', wholeNumber(1, 1000)),
      async (options: RunsOptions, { io }) => (await import('./commands/runs.ts')).runsCommand(options, io),
    ),
    isDefault: true,
  },
  row(
    'runs revoke',
    'end a run and those below it: their tokens open nothing from then on',
    (command) => gatewayOptions(command).argument('<id>', 'as "toolgate runs" shows it'),
    async (options: RunsOptions, { io }, id) => (await import('./commands/runs.ts')).revokeRunCommand(id, options, io),
  ),
  row(
    'reload',
    'a running gateway reads its file again: policy, callers, limits, groups, apps and servers; prints what changed',
    (command) =>
      gatewayOptions(command)
        .option('--dry-run', 'change nothing, and print what would change')
        .option('--publish', 'all replicas run the file of this gateway, if each of them can')
        .option('--force', 'publish it also if one cannot, which then starts no call'),
    async (options: ReloadCommandOptions, { io }) => (await import('./commands/reload.ts')).reloadCommand(options, io),
  ),
  { name: 'replicas', does: 'list the gateways that share their stores', define: gatewayOptions },
  {
    ...row(
      'replicas list',
      'list them: what each has applied, and whether it starts calls',
      gatewayOptions,
      async (options: ReplicasOptions, { io }) => (await import('./commands/replicas.ts')).replicasCommand(options, io),
    ),
    isDefault: true,
  },
  row(
    'replicas accept',
    'go on with a database that lost changes, so that replicas start calls again',
    (command) => gatewayOptions(command).option('--limits', 'go on with limits whose counts are lost, instead'),
    async (options: AcceptReplicasOptions, { io }) =>
      (await import('./commands/replicas.ts')).acceptReplicasCommand(options, io),
  ),
  row(
    'backup',
    'copy the files of a gateway, which may run, into a new folder: configuration, state, audit, checkpoints, keys',
    (command) =>
      command
        .argument('<folder>', 'a new one')
        .option('--config <file>', 'the configuration', DEFAULT_CONFIG)
        .option('--json', 'for programs'),
    async (options: BackupOptions, { io }, folder) =>
      (await import('./commands/backup.ts')).backupCommand(folder, options, io),
  ),
  row(
    'restore',
    'put a backup in the place of the files of a gateway, which must not run',
    (command) =>
      command
        .argument('<folder>', 'the backup')
        .option('--config <file>', 'where the configuration goes', DEFAULT_CONFIG)
        .option('--force', 'move files that are there aside')
        .option('--keep-approvals', 'keep open approvals open: only if no gateway ran since the backup')
        .option('--json', 'for programs'),
    async (options: RestoreOptions, { io }, folder) =>
      (await import('./commands/restore.ts')).restoreCommand(folder, options, io),
  ),
  row(
    'halt',
    'stop what all the options match, now: new, waiting and running calls',
    (command) =>
      targetOptions(gatewayOptions(command))
        .requiredOption('--reason <text>', 'the reason; the model sees it')
        .option('--force', 'even if no tool or no configured agent matches now'),
    async (options: HaltOptions, { io }) => (await import('./commands/halts.ts')).haltCommand(options, io),
  ),
  row(
    'release',
    'end a halt, by its target or by its id',
    (command) => targetOptions(gatewayOptions(command)).option('--id <id>', 'as "toolgate halts" shows it'),
    async (options: ReleaseOptions, { io }) => (await import('./commands/halts.ts')).releaseCommand(options, io),
  ),
  row('halts', 'list the halts', gatewayOptions, async (options: TargetOptions & { json?: boolean }, { io }) =>
    (await import('./commands/halts.ts')).haltsCommand(options, io),
  ),
  { name: 'audit', does: 'read the audit', define: (command) => command },
  row(
    'audit tail',
    'print the newest records, and then new ones until it is stopped',
    (command) =>
      recordFilters(command)
        .option('-n, --lines <n>', 'how many to begin with', wholeNumber(0, 1000), 10)
        .option('--no-follow', 'end after these'),
    async (options: AuditTailOptions, { io, signals }) =>
      (await import('./commands/audit.ts')).auditTailCommand(options, io, signals),
  ),
  row(
    'audit query',
    'print the records that match, newest first',
    (command) =>
      recordFilters(command)
        .option('--limit <n>', 'at most this many; default 100', wholeNumber(1, 1000))
        .option('--before <seq>', 'only older records', wholeNumber(0, MAX_SEQ))
        .option('--after <seq>', 'only newer records', wholeNumber(0, MAX_SEQ)),
    async (options: AuditQueryOptions, { io }) => (await import('./commands/audit.ts')).auditQueryCommand(options, io),
  ),
  row(
    'audit export',
    'print all records that match, oldest first, as JSON lines',
    (command) =>
      recordFilters(command)
        .addOption(new Option('--from <time>', 'the same as --since').argParser(timeAgo))
        .addOption(new Option('--to <time>', 'the same as --until').argParser(timeAgo))
        .option('--folder <folder>', 'write the whole audit that replicas share to a new folder'),
    async ({ from, to, ...options }: AuditExportOptions & { from?: number; to?: number }, { io }) => {
      const range = { ...(from === undefined ? {} : { since: from }), ...(to === undefined ? {} : { until: to }) }
      return (await import('./commands/audit.ts')).auditExportCommand({ ...options, ...range }, io)
    },
  ),
  row(
    'audit policy',
    'print the policy that decided, by the policy_hash of a record',
    (command) =>
      gatewayOptions(command)
        .argument('<hash>', 'the hash, or its first 8 digits or more')
        .option('--file <file>', FILE_HELP),
    async (options: AuditOptions, { io }, hash) =>
      (await import('./commands/audit.ts')).auditPolicyCommand(hash, options, io),
  ),
  row(
    'audit verify',
    'check an audit against its chain and its checkpoints; the exit code says what is wrong',
    (command) =>
      auditFileOptions(command)
        .option('--signed <seq>', 'fail if no checkpoint signs this record', wholeNumber(1, MAX_SEQ))
        .option('--witness <file>', 'the checkpoints that a witness has kept, for an audit that replicas share')
        .option('--json', 'for programs'),
    async (options: AuditVerifyOptions, { io }) =>
      (await import('./commands/audit-verify.ts')).auditVerifyCommand(options, io),
  ),
  row(
    'audit open',
    'print the sealed input of a call, with the key of the configuration; the audit says that it was opened',
    (command) =>
      command
        .argument('<call>', 'its tool_call_id, or the seq of a record')
        .option('--config <file>', 'the configuration', DEFAULT_CONFIG)
        .option('--file <file>', 'a copy of the audit (SQLite or JSON lines); the key may be in TOOLGATE_INPUT_KEY')
        .option('--json', 'for programs: with the record'),
    async (options: AuditOpenOptions, { io }, call) =>
      (await import('./commands/audit-open.ts')).auditOpenCommand(call, options, io),
  ),
  row(
    'audit rotate',
    'a running gateway closes its audit file of JSON lines and begins another; prints the name of the closed one',
    gatewayOptions,
    async (options: AuditOptions, { io }) => (await import('./commands/audit.ts')).auditRotateCommand(options, io),
  ),
  row(
    'audit prove',
    'print the proofs that records are in the audit; of an audit that replicas share, as tlog-proof',
    (command) =>
      auditFileOptions(command)
        .option('--call <id>', 'the records of a call: its tool_call_id')
        .option('--record <seq>', 'one record of an audit that replicas share', wholeNumber(1, MAX_SEQ))
        .option('--from <file>', 'that the log of replicas goes on from the checkpoint in this file')
        .option('--out <folder>', 'a file for each proof about replicas, in this folder')
        .option('--json', ERRORS_AS_JSON),
    async (options: AuditProveOptions, { io }) =>
      (await import('./commands/audit-verify.ts')).auditProveCommand(options, io),
  ),
  row(
    'audit check-proof',
    'check proofs that "audit prove" printed; needs no audit',
    (command) =>
      command
        .argument('<file>', 'the proofs')
        .requiredOption('--public-key <file>', 'the public key that is trusted, in PEM; of replicas: name+id+key')
        .option('--from <file>', 'the earlier checkpoint, for a proof that a log goes on')
        .option('--json', ERRORS_AS_JSON),
    async (options: CheckProofOptions, { io }, file) =>
      (await import('./commands/audit-verify.ts')).auditCheckProofCommand(file, options, io),
  ),
  {
    name: 'completion',
    does: 'print the completion script of a shell: bash, zsh or fish',
    define: (command) =>
      command
        .argument('[words...]', 'the shell')
        .addOption(new Option('--words', 'complete the last of the words').hideHelp())
        .option('--json', ERRORS_AS_JSON),
    run: async (command, { io }) => {
      const [words] = command.processedArgs as [readonly string[]]
      const { completeWords, completionScript } = await import('./commands/completion.ts')
      if (command.opts<{ words?: boolean }>().words && command.parent) return completeWords(command.parent, words, io)
      return completionScript(words[0] ?? '', io)
    },
  },
]

/** Returns the row of a command with at most one argument, which `run` receives after the options. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- commander types its options by such a parameter
function row<Options extends object, Argument extends string | undefined = string>(
  name: string,
  does: string,
  define: CommandRow['define'],
  run: (options: Options, deps: ServeDeps, argument: Argument) => Promise<ExitName>,
): CommandRow {
  return {
    name,
    does,
    define,
    run: (command, deps) => run(command.optsWithGlobals<Options>(), deps, command.processedArgs[0]),
  }
}

/** The options of a command that asks a running gateway. */
function gatewayOptions(command: Command): Command {
  return command
    .option('--url <url>', 'the gateway; default: TOOLGATE_URL, or http://127.0.0.1:8787')
    .option('--key <key>', 'a console key; default: TOOLGATE_KEY')
    .option('--config <file>', "a configuration that has the gateway's address and its console key")
    .option('--json', 'for programs: the bodies of the HTTP API')
}

/** The options of a command that changes the file of a client. */
function clientOptions(command: Command): Command {
  return command
    .argument('<client>', 'claude-desktop, claude-code, cursor, vscode, windsurf, zed, or the path of a file')
    .option('--config <file>', 'the configuration', DEFAULT_CONFIG)
    .option('--as <user>', 'the caller that the client is; default: the only one')
    .option('--name <name>', 'what the client calls the gateway', 'toolgate')
    .option('--project', 'the file of this folder, not that of the user')
    .option('--local', "Claude Code: the servers of this folder in the user's file")
    .option('--file <file>', 'another file of this client')
    .option('--undo', 'restore the files as they were before the last import or connect')
    .option('--json', 'for programs')
}

/** The options that name a caller. */
function whoseOptions(command: Command): Command {
  return command
    .option('--as <user>', 'a caller of the configuration')
    .option('--caller <json>', 'any other caller')
    .option('--app <app>', 'within an app of the configuration')
}

/** The options that name what is halted. */
function targetOptions(command: Command): Command {
  return command
    .option('--user <user>', 'a user, of every tenant unless --tenant is given')
    .option('--session <session>', 'one session')
    .option('--tool <selector>', 'such as files:write_file, browser:* or group:web')
    .option('--tenant <tenant>', 'one tenant')
    .option('--all', 'everything; in your tenant, if you have one')
}

function approvalFilters(command: Command): Command {
  return command
    .addOption(new Option('--status <status>', 'only of this status').choices(APPROVAL_STATUSES).default('pending'))
    .option('--all', 'of every status')
    .option('--user <user>', 'only of this user')
    .option('--tool <id>', 'only of this tool')
    .option('--limit <n>', 'at most this many; default 100', wholeNumber(1, 1000))
}

function recordFilters(command: Command): Command {
  return gatewayOptions(command)
    .option('--file <file>', FILE_HELP)
    .option('--tool <id>', 'only of this tool')
    .option('--user <user>', 'only of this user')
    .option('--session <session>', 'only of this session')
    .option('--run <run>', 'only of this run')
    .addOption(new Option('--event <event>', 'only this event').choices(AUDIT_EVENTS))
    .addOption(new Option('--outcome <outcome>', 'only attempts with this outcome').choices(AUDIT_OUTCOMES))
    .option('--since <time>', 'only of this time and later: 2026-11-21T09:00:00Z, or 2h for two hours ago', timeAgo)
    .option('--until <time>', 'only earlier than this time', timeAgo)
}

/** The options of a command that reads an audit's files. */
function auditFileOptions(command: Command): Command {
  return command
    .option('--file <file>', 'the audit (SQLite or JSON lines); default: the one of the configuration')
    .option('--config <file>', 'the configuration', DEFAULT_CONFIG)
    .option('--checkpoints <file>', 'default: as the configuration says, or in the folder checkpoints beside the file')
    .option('--offline <folder>', 'an audit that "audit export --folder" has written; needs no database')
    .option('--public-key <file>', 'the public key that is trusted, in PEM; default: <checkpoints>.pub')
}

function repeated(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

const UNITS_MS: ReadonlyMap<string, number> = new Map([
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

/** Parses a time, RFC 3339 or how long ago. Returns milliseconds since 1970. */
function timeAgo(text: string): number {
  const ago = /^(\d{1,9})([smhd])$/.exec(text)
  if (ago) return Date.now() - Number(ago[1]) * (UNITS_MS.get(ago[2] ?? '') ?? 0)
  const ms = /^\d{4}-\d{2}-\d{2}(?:T[\d:.]+(?:Z|[+-]\d{2}:\d{2}))?$/.test(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(ms)) return ms
  throw new InvalidArgumentError('It is a time such as 2026-11-21T09:00:00Z or 2026-11-21, or 90s, 15m, 2h or 7d ago.')
}

function sinceOf(text: string): Since {
  return { text, ms: timeAgo(text) }
}

/** Returns a parser of whole numbers in a range. */
function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`It is a whole number from ${min} to ${max}.`)
  }
}
