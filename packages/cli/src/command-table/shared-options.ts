import { APPROVAL_STATUSES, AUDIT_EVENTS, AUDIT_OUTCOMES } from '@toolgate/core/words'
import { type Command, Option } from 'commander'
import type { OptionRule } from '../option-rules.ts'
import { timeAgo, wholeNumber } from './values.ts'

export const DEFAULT_CONFIG = 'toolgate.yaml'
export const ERRORS_AS_JSON = 'for programs: errors as JSON'
export const TOOL_HELP = 'its id, such as files:read_file'
export const ITEM_HELP: string = `${TOOL_HELP}, resource:files:file:///a.md or prompt:git:review`
export const FILE_HELP = 'read this audit file (SQLite or JSON lines) instead of asking a gateway'

/** Adds the options of a command that calls a running gateway. */
export function gatewayOptions(command: Command): Command {
  return command
    .option('--url <url>', 'the gateway; default: TOOLGATE_URL, or http://127.0.0.1:8787')
    .option('--key <key>', 'a console key; default: TOOLGATE_KEY')
    .option('--config <file>', "a configuration that has the gateway's address and its console key")
    .option('--json', 'for programs: the bodies of the HTTP API')
}

/** Adds the options of a command that changes a client's file. */
export function clientOptions(command: Command): Command {
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

export const CLIENT_RULES: readonly OptionRule[] = [
  ['--project', 'not with', '--local', '--file'],
  ['--undo', 'not with', '--config', '--as', '--name'],
]

/** Adds the options that name a caller. */
export function whoseOptions(command: Command): Command {
  return command
    .option('--as <user>', 'a caller of the configuration')
    .option('--caller <json>', 'any other caller')
    .option('--app <app>', 'within an app of the configuration')
}

export const WHOSE_RULES: readonly OptionRule[] = [
  ['--as', 'not with', '--caller'],
  ['--app', 'needs', '--as', '--caller'],
]

/** Adds the options that name the target of a halt. */
export function targetOptions(command: Command): Command {
  return command
    .option('--user <user>', 'a user, of every tenant unless --tenant is given')
    .option('--session <session>', 'one session')
    .option('--tool <selector>', 'such as files:write_file, browser:* or group:web')
    .option('--tenant <tenant>', 'one tenant')
    .option('--all', 'everything; in your tenant, if you have one')
}

export const TARGET_FLAGS = ['--user', '--session', '--tool', '--tenant', '--all'] as const
export const TARGET_RULES: readonly OptionRule[] = [['--all', 'not with', '--user', '--session', '--tool', '--tenant']]

export function approvalFilters(command: Command): Command {
  return command
    .addOption(new Option('--status <status>', 'only of this status').choices(APPROVAL_STATUSES).default('pending'))
    .option('--all', 'of every status')
    .option('--user <user>', 'only of this user')
    .option('--tool <id>', 'only of this tool')
    .option('--limit <n>', 'at most this many; default 100', wholeNumber(1, 1000))
}

export function recordFilters(command: Command): Command {
  return gatewayOptions(command)
    .option('--file <file>', FILE_HELP)
    .option('--tool <id>', 'only of this tool')
    .option('--user <user>', 'only of this user')
    .option('--session <session>', 'only of this session')
    .option('--run <run>', 'only of this run')
    .addOption(new Option('--event <event>', 'only this event').choices(AUDIT_EVENTS))
    .addOption(new Option('--outcome <outcome>', 'only attempts with this outcome').choices(AUDIT_OUTCOMES))
    .option(
      '--since <time>',
      'only of this time and later: 2h (ago), yesterday, monday, 09:00, 2026-11-21, 2026-11-21T09:00:00Z',
      timeAgo,
    )
    .option('--until <time>', 'only earlier than this time', timeAgo)
}

export const FILE_RULE: OptionRule = ['--file', 'not with', '--url', '--key', '--config']
export const RECORD_RULES: readonly OptionRule[] = [FILE_RULE, ['--since', 'before', '--until']]
export const RECORD_FLAGS = [
  '--tool',
  '--user',
  '--session',
  '--run',
  '--event',
  '--outcome',
  '--since',
  '--until',
] as const

/** Adds the options of a command that reads an audit's files. */
export function auditFileOptions(command: Command): Command {
  return command
    .option('--file <file>', 'the audit (SQLite or JSON lines); default: the one of the configuration')
    .option('--config <file>', 'the configuration', DEFAULT_CONFIG)
    .option('--checkpoints <file>', 'default: as the configuration says, or in the folder checkpoints beside the file')
    .option('--offline <folder>', 'an audit that "audit export --folder" has written; needs no database')
    .option(
      '--public-key <file>',
      'the public keys that are trusted, name+id+key, one a line; default: <checkpoints>.pub',
    )
}

export const AUDIT_FILE_RULES: readonly OptionRule[] = [
  ['--file', 'not with', '--config', '--offline'],
  ['--offline', 'not with', '--config', '--checkpoints'],
]
