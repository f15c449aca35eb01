import type { KeyRow } from '@toolgate/gateway'
import { existsSync } from 'node:fs'
import { createApi } from '../client.ts'
import { DEFAULT_CONFIG, findTarget, type TargetOptions } from '../target.ts'
import { CliError, type ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { forgetKey, keysPath, saveKey } from '../project/keys-file.ts'
import { renderTable } from '../table.ts'
import { parseTime, unitMs } from '../times.ts'

export interface KeysOptions extends TargetOptions {
  readonly json?: boolean
}

export interface CreateKeyOptions extends KeysOptions {
  readonly user: string
  readonly for?: string
  readonly tenant?: string
  readonly like?: string
  readonly apps?: string
  readonly expires?: string
  readonly id?: string
  /** Stores the key beside the configuration, for the commands in this folder. */
  readonly save?: boolean
}

/** `toolgate keys list`: prints the keys. */
export async function keysCommand(options: KeysOptions, io: Io): Promise<ExitName> {
  const body = await createApi(findTarget(options, io)).keys()
  if (options.json) printJson(io.stdout, body)
  else {
    const rows = body.keys.map((row) => cellsOf(row))
    printLine(
      io.stdout,
      renderTable(['ID', 'FOR', 'USER', 'ROLES', 'APPS', 'EXPIRES', 'LAST USED', 'MADE BY'], rows, io.stdout),
    )
  }
  return 'ok'
}

function cellsOf(row: KeyRow): string[] {
  const {
    id,
    for: use,
    user,
    tenant,
    roles = [],
    apps,
    expiresAt,
    lastUsedAt,
    from,
    createdBy,
    isExpired,
    isOrphan,
  } = row
  const who = tenant === undefined ? (user ?? '') : `${user} of ${tenant}`
  const expires = expiresAt === undefined ? 'never' : `${isExpired ? 'expired ' : ''}${toTime(expiresAt)}`
  const used = lastUsedAt === undefined ? '' : toTime(lastUsedAt)
  const opens = isOrphan ? 'nothing' : (apps?.join(', ') ?? 'all')
  const maker = from === 'file' ? 'the file' : (createdBy ?? '')
  return [id, use, who, roles.join(', '), opens, expires, used, maker].map(printable)
}

function toTime(ms: number): string {
  return new Date(ms).toISOString()
}

/** `toolgate keys create`: prints the new key. It is shown only once. */
export async function createKeyCommand(options: CreateKeyOptions, io: Io): Promise<ExitName> {
  const { user, for: use, tenant, like, apps, expires, id } = options
  const config = options.save ? savedBeside(options) : undefined
  const made = await createApi(findTarget(options, io)).createKey({
    user,
    for: use ?? 'mcp',
    ...(tenant === undefined ? {} : { tenant }),
    ...(like === undefined ? {} : { like }),
    ...(apps === undefined ? {} : { apps: apps.split(',').map((app) => app.trim()) }),
    ...(expires === undefined ? {} : { expiresAt: parseExpiry(expires, Date.now()) }),
    ...(id === undefined ? {} : { id }),
  })
  if (config !== undefined) {
    const { key, expiresAt } = made
    saveKey(config, { user, for: made.for, key, id: made.id, ...(expiresAt === undefined ? {} : { expiresAt }) })
  }
  if (options.json) printJson(io.stdout, made)
  else if (config !== undefined)
    printLine(
      io.stdout,
      `${painter(io.stdout, io.env)('green', 'saved')}  ${printable(made.id)} of ${printable(user)} in ${printable(keysPath(config))}, which commands in this folder use`,
    )
  else {
    printLine(io.stdout, printable(made.key))
    printLine(io.stderr, `The key ${printable(made.id)} of ${printable(user)} works now. It is shown this once.`)
  }
  return 'ok'
}

/** Returns the configuration to store a key beside. @throws {CliError} `usage` before a key is created */
function savedBeside(options: KeysOptions): string {
  const config = configBeside(options)
  if (config !== undefined) return config
  throw new CliError('usage', '--save keeps the key beside a configuration, and this folder has none.', {
    hint: 'Name it with --config <file>.',
  })
}

function configBeside({ config }: KeysOptions): string | undefined {
  return config ?? (existsSync(DEFAULT_CONFIG) ? DEFAULT_CONFIG : undefined)
}

/** `toolgate keys revoke`: revokes a key. */
export async function revokeKeyCommand(id: string, options: KeysOptions, io: Io): Promise<ExitName> {
  const row = await createApi(findTarget(options, io)).revokeKey(id)
  const config = configBeside(options)
  if (config !== undefined) forgetKey(config, row.id)
  if (options.json) printJson(io.stdout, row)
  else {
    const paint = painter(io.stdout, io.env)
    printLine(io.stdout, `${paint('red', 'revoked')}  ${printable(row.id)} of ${printable(row.user ?? '')}`)
  }
  return 'ok'
}

/** Reads `90d`, `12h`, `30m` or a date. @throws {CliError} `usage` */
export function parseExpiry(text: string, nowMs: number): number {
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? []
  const ms = count === undefined ? parseTime(text) : nowMs + Number(count) * unitMs(unit)
  if (ms !== undefined && ms > nowMs) return ms
  throw new CliError(
    'usage',
    `--expires is ${JSON.stringify(text)}, which is neither a date to come nor a time such as 90d or 12h.`,
  )
}
