import type { ApprovalDecision } from '@toolgate/core/stores'
import { APPROVAL_DECISIONS } from '@toolgate/core/words'
import { type Command, Option } from 'commander'
import type { CompareApprovalOptions } from '../commands/approvals-compare.ts'
import type { ApprovalsOptions, DecideOptions } from '../commands/approvals.ts'
import type { TargetOptions } from '../target.ts'
import type { GrantsOptions } from '../commands/grants.ts'
import type { CreateKeyOptions, KeysOptions } from '../commands/keys.ts'
import type { LimitsOptions } from '../commands/limits.ts'
import type { NotifyOptions } from '../commands/notify.ts'
import type { AcceptPinOptions, PinsCommandOptions } from '../commands/pins.ts'
import type { PeopleOptions } from '../commands/people.ts'
import type { RunsOptions } from '../commands/runs.ts'
import { type CommandRow, row } from './row.ts'
import { GRANT_FLAGS, grantFilters, grantOptions } from './grant-options.ts'
import { approvalFilters, gatewayOptions, TOOL_HELP } from './shared-options.ts'
import { repeated, wholeNumber } from './values.ts'

export const PEOPLE_COMMANDS: readonly CommandRow[] = [
  { name: 'approvals', does: 'list the calls that wait for a person, and decide', define: gatewayOptions },
  {
    ...row(
      'approvals list',
      'list approvals with their inputs; by default the pending ones',
      (command) => approvalFilters(gatewayOptions(command)),
      async (options: ApprovalsOptions, { io }) =>
        (await import('../commands/approvals.ts')).approvalsCommand(options, io),
      [['--status', 'not with', '--all']],
    ),
    isDefault: true,
  },
  ...APPROVAL_DECISIONS.map((decision) =>
    row(
      `approvals ${decision}`,
      {
        approve: 'approve a waiting call, with exactly this input, once',
        reject: 'reject a waiting call',
        revoke: 'revoke an approval that was not used yet, or your own approval while it waits for others',
      }[decision],
      (command) => {
        const deciding = decisionOptions(gatewayOptions(command), decision)
        return decision === 'approve' ? grantOptions(deciding) : deciding
      },
      async (options: DecideOptions, { io }, id) =>
        (await import('../commands/approvals.ts')).decideCommand({ id, decision }, options, io),
      decision === 'approve' ? GRANT_FLAGS.map((flag) => [flag, 'needs', '--for'] as const) : [],
    ),
  ),
  { name: 'grants', does: 'list the grants that let calls through, and revoke them', define: gatewayOptions },
  {
    ...row(
      'grants list',
      'list grants; by default the live ones',
      (command) => grantFilters(gatewayOptions(command)),
      async (options: GrantsOptions, { io }) => (await import('../commands/grants.ts')).grantsCommand(options, io),
      [['--status', 'not with', '--all']],
    ),
    isDefault: true,
  },
  row(
    'grants revoke',
    'end a grant: no call uses it from then on',
    (command) =>
      gatewayOptions(command)
        .argument('<id>', 'as "toolgate grants" shows it')
        .option('--reason <text>', 'the reason, for the audit'),
    async (options: TargetOptions & { reason?: string; json?: boolean }, { io }, id) =>
      (await import('../commands/grants.ts')).revokeGrantCommand(id, options, io),
  ),
  row(
    'approvals compare',
    'read what a waiting call would change, and show the difference',
    (command) => gatewayOptions(command).argument('<id>', 'as "toolgate approvals" shows it'),
    async (options: CompareApprovalOptions, { io }, id) =>
      (await import('../commands/approvals-compare.ts')).compareApprovalCommand(id, options, io),
  ),
  { name: 'notify', does: 'list who is told of approvals, and send an example', define: gatewayOptions },
  {
    ...row(
      'notify list',
      'list the receivers of notifications: what waits for them, and their last problem',
      gatewayOptions,
      async (options: NotifyOptions, { io }) => (await import('../commands/notify.ts')).notifyCommand(options, io),
    ),
    isDefault: true,
  },
  row(
    'notify test',
    'send an example to a receiver, or to all, and print what it answers',
    (command) => gatewayOptions(command).argument('[receiver]', 'as "toolgate notify" shows it'),
    async (options: NotifyOptions, { io }, receiver: string | undefined) =>
      (await import('../commands/notify.ts')).notifyTestCommand(receiver, options, io),
  ),
  row(
    'pins',
    'list the tools whose definition has changed or holds hidden content',
    (command) => gatewayOptions(command).option('--all', 'unchanged ones, too'),
    async (options: PinsCommandOptions, { io }) => (await import('../commands/pins.ts')).pinsCommand(options, io),
  ),
  row(
    'pins accept',
    'show the changes of a definition; with its hash, accept it',
    (command) =>
      gatewayOptions(command)
        .argument('<tool>', TOOL_HELP)
        .option('--hash <hash>', 'of the definition that you reviewed; 12 digits are enough'),
    async (options: AcceptPinOptions, { io }, tool) =>
      (await import('../commands/pins.ts')).acceptPinCommand(tool, options, io),
  ),
  { name: 'keys', does: 'list, make and revoke API keys, without a restart', define: gatewayOptions },
  {
    ...row(
      'keys list',
      'list keys: their users, apps, expiry and last use',
      gatewayOptions,
      async (options: KeysOptions, { io }) => (await import('../commands/keys.ts')).keysCommand(options, io),
    ),
    isDefault: true,
  },
  row(
    'keys create',
    'make a key for a user of the configuration; it is printed once',
    (command) =>
      gatewayOptions(command)
        .option('--user <user>', 'whose it is, as the configuration names them')
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
    async (options: CreateKeyOptions, { io }) => (await import('../commands/keys.ts')).createKeyCommand(options, io),
    [['needs', '--user']],
  ),
  row(
    'keys revoke',
    'end a key that was made, with its sessions, streams and logins',
    (command) => gatewayOptions(command).argument('<id>', 'as "toolgate keys" shows it'),
    async (options: KeysOptions, { io }, id) => (await import('../commands/keys.ts')).revokeKeyCommand(id, options, io),
  ),
  { name: 'people', does: 'list the people whom the gateway has seen, and forget some', define: gatewayOptions },
  {
    ...row(
      'people list',
      'list people: their roles, where these are from, clients and last visit',
      (command) =>
        gatewayOptions(command)
          .option('--text <text>', 'only names, roles and clients that contain it')
          .option('--tenant <tenant>', 'only people of this tenant')
          .option('--role <role>', 'only people with this role')
          .option('--limit <n>', 'at most this many; default 100', wholeNumber(1, 2000)),
      async (options: PeopleOptions, { io }) => (await import('../commands/people.ts')).peopleCommand(options, io),
    ),
    isDefault: true,
  },
  row(
    'people forget',
    'remove the record of a person, until they come again',
    (command) =>
      gatewayOptions(command)
        .argument('<user>', 'as "toolgate people" shows it')
        .option('--tenant <tenant>', 'the tenant of the user; default: none, or your own'),
    async (options: PeopleOptions, { io }, user) =>
      (await import('../commands/people.ts')).forgetPersonCommand(user, options, io),
  ),
  row(
    'limits',
    'what is left of budgets, as limits with a cost count them',
    (command) => gatewayOptions(command).option('--limit <n>', 'at most this many; default 100', wholeNumber(1, 1000)),
    async (options: LimitsOptions, { io }) => (await import('../commands/limits.ts')).limitsCommand(options, io),
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
      async (options: RunsOptions, { io }) => (await import('../commands/runs.ts')).runsCommand(options, io),
    ),
    isDefault: true,
  },
  row(
    'runs revoke',
    'end a run and those below it: their tokens open nothing from then on',
    (command) => gatewayOptions(command).argument('<id>', 'as "toolgate runs" shows it'),
    async (options: RunsOptions, { io }, id) => (await import('../commands/runs.ts')).revokeRunCommand(id, options, io),
  ),
]

function decisionOptions(command: Command, decision: ApprovalDecision): Command {
  command
    .argument('<id>', 'as "toolgate approvals" shows it')
    .option('--reason <text>', 'the reason; the model sees it when its call is refused')
  return decision === 'approve'
    ? command.option('--set <field=value>', 'change a field first, such as amount=100; repeatable', repeated)
    : command
}
