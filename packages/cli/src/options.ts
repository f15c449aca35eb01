import { APPROVAL_STATUSES, AUDIT_EVENTS, AUDIT_OUTCOMES } from '@toolgate/core/words'
import { type Command, InvalidArgumentError, Option } from 'commander'

export const DEFAULT_CONFIG = 'toolgate.yaml'

/** The options that name what is halted. */
export function naming(command: Command): Command {
  return command
    .option('--user <user>', 'of every tenant, unless one is named too')
    .option('--session <session>', 'one session')
    .option('--tool <selector>', 'such as files:write_file, browser:* or group:web')
    .option('--tenant <tenant>', 'one tenant')
    .option('--all', 'everything; of your tenant, where you have one')
}

/** The options of a list of approvals. */
export function listing(command: Command): Command {
  return command
    .addOption(new Option('--status <status>', 'only of this status').choices(APPROVAL_STATUSES).default('pending'))
    .option('--all', 'of every status')
    .option('--user <user>', 'only of this user')
    .option('--tool <id>', 'only of this tool')
    .option('--limit <n>', 'at most so many; default 100', wholeNumber(1, 1000))
}

/** The options of a command that asks a running gateway. */
export function asking(command: Command): Command {
  return command
    .option('--url <url>', 'the gateway; default: TOOLGATE_URL, or http://127.0.0.1:8787')
    .option('--key <key>', 'a console key; default: TOOLGATE_KEY')
    .option('--config <file>', "a configuration that has the gateway's address and its console key")
    .option('--json', 'for programs: the bodies of the HTTP API')
}

/** The options of a command that reads records. */
export function reading(command: Command): Command {
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
export function verifying(command: Command): Command {
  return command
    .option('--file <file>', 'the audit (SQLite or JSON lines); default: the one of the configuration')
    .option('--config <file>', 'the configuration', DEFAULT_CONFIG)
    .option('--checkpoints <file>', 'default: as the configuration says, or in the folder checkpoints beside the file')
    .option('--public-key <file>', 'the public key that is trusted, in PEM; default: <checkpoints>.pub')
}

const UNITS_MS: ReadonlyMap<string, number> = new Map([
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

/** Reads a time: RFC 3339, or how long ago. Gives milliseconds since 1970. */
export function timeAgo(text: string): number {
  const ago = /^(\d{1,9})([smhd])$/.exec(text)
  if (ago) return Date.now() - Number(ago[1]) * (UNITS_MS.get(ago[2] as string) as number)
  const ms = /^\d{4}-\d{2}-\d{2}(?:T[\d:.]+(?:Z|[+-]\d{2}:\d{2}))?$/.test(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(ms)) return ms
  throw new InvalidArgumentError('It is a time such as 2026-11-21T09:00:00Z or 2026-11-21, or 90s, 15m, 2h or 7d ago.')
}

/** Returns a parser of whole numbers in a range. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`It is a whole number from ${min} to ${max}.`)
  }
}
