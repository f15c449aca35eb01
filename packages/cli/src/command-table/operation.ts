import type { TargetOptions } from '../target.ts'
import type { BackupOptions } from '../commands/backup.ts'
import type { HaltOptions, ReleaseOptions } from '../commands/halts.ts'
import type { ReloadCommandOptions } from '../commands/reload.ts'
import type { AcceptReplicasOptions, ReplicasOptions } from '../commands/replicas.ts'
import type { RestoreOptions } from '../commands/restore.ts'
import { type CommandRow, row } from './row.ts'
import { DEFAULT_CONFIG, gatewayOptions, TARGET_FLAGS, TARGET_RULES, targetOptions } from './shared-options.ts'

export const OPERATION_COMMANDS: readonly CommandRow[] = [
  row(
    'reload',
    'a running gateway reads its file again: policy, callers, limits, groups, apps and servers; prints what changed',
    (command) =>
      gatewayOptions(command)
        .option('--dry-run', 'change nothing, and print what would change')
        .option('--preview <id>', 'only what a dry run printed with this id; otherwise nothing changes')
        .option('--publish', 'all replicas run the file of this gateway, if each of them can')
        .option('--force', 'publish it also if one cannot, which then starts no call'),
    async (options: ReloadCommandOptions, { io }) => (await import('../commands/reload.ts')).reloadCommand(options, io),
    [['--force', 'needs', '--publish']],
  ),
  { name: 'replicas', does: 'list the gateways that share their stores', define: gatewayOptions },
  {
    ...row(
      'replicas list',
      'list them: what each has applied, and whether it starts calls',
      gatewayOptions,
      async (options: ReplicasOptions, { io }) =>
        (await import('../commands/replicas.ts')).replicasCommand(options, io),
    ),
    isDefault: true,
  },
  row(
    'replicas accept',
    'go on with a database that lost changes, so that replicas start calls again',
    (command) => gatewayOptions(command).option('--limits', 'go on with limits whose counts are lost, instead'),
    async (options: AcceptReplicasOptions, { io }) =>
      (await import('../commands/replicas.ts')).acceptReplicasCommand(options, io),
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
      (await import('../commands/backup.ts')).backupCommand(folder, options, io),
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
      (await import('../commands/restore.ts')).restoreCommand(folder, options, io),
  ),
  {
    ...row(
      'halt',
      'stop what all the options match, now: new, waiting and running calls',
      (command) =>
        targetOptions(gatewayOptions(command)).option(
          '--reason <text>',
          'the reason, which the model sees; default: a person has halted it',
        ),
      async (options: HaltOptions, { io }) => (await import('../commands/halts.ts')).haltCommand(options, io),
      [['needs', ...TARGET_FLAGS], ...TARGET_RULES],
    ),
    wordHint: 'Say what the name is: --user <user>, --tool <selector>, --tenant <tenant> or --session <session>.',
  },
  row(
    'release',
    'end a halt, by its target or by its id',
    (command) => targetOptions(gatewayOptions(command)).option('--id <id>', 'as "toolgate halts" shows it'),
    async (options: ReleaseOptions, { io }) => (await import('../commands/halts.ts')).releaseCommand(options, io),
    [['needs', '--id', ...TARGET_FLAGS], ['--id', 'not with', ...TARGET_FLAGS], ...TARGET_RULES],
  ),
  row('halts', 'list the halts', gatewayOptions, async (options: TargetOptions & { json?: boolean }, { io }) =>
    (await import('../commands/halts.ts')).haltsCommand(options, io),
  ),
]
