import { existsSync } from 'node:fs'
import { loadConfig } from '@toolgate/gateway'
import type { AuditSource, SharedVerdict } from '@toolgate/stores/verify'
import { CliError, type ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { countOf, inputsText, OPENERS_CHAIN, readInput, VERDICTS } from './audit-common.ts'

/** The shared audit that a command reads. */
export interface SharedAuditCommandOptions {
  readonly file?: string
  readonly config: string
  /** The folder of an exported audit, to read in place of the database. */
  readonly offline?: string
  readonly publicKey?: string
  readonly json?: boolean
}

export interface SharedVerifyOptions extends SharedAuditCommandOptions {
  /** A file with the notes of a witness. */
  readonly witness?: string
}

const SHOWN = 20

/**
 * Runs `use` with the shared audit, from an export or the configuration's database. Returns `undefined` if the
 * configuration has no shared audit.
 */
export async function withSharedAudit<T>(
  { file, config, offline }: SharedAuditCommandOptions,
  { env }: Io,
  use: (source: AuditSource) => Promise<T>,
): Promise<T | undefined> {
  if (file !== undefined) return undefined
  if (offline !== undefined) {
    const { openExportedAudit } = await import('@toolgate/stores/verify')
    return use(openExportedAudit(offline))
  }
  const { audit, stores } = loadConfig(config, { env })
  if (audit.store !== 'postgres' || stores?.postgres === undefined) return undefined
  const { openPostgresStores } = await import('@toolgate/stores/postgres')
  const opened = await openPostgresStores({ url: stores.postgres, applicationName: 'toolgate audit' })
  try {
    return await use(opened.auditSource)
  } finally {
    await opened.close()
  }
}

/** Verifies all chains with the log that signs them, and the log with its witness. */
export async function verifyShared(
  source: AuditSource,
  { publicKey, witness, json }: SharedVerifyOptions,
  io: Io,
): Promise<ExitName> {
  if (witness !== undefined && !existsSync(witness))
    throw new CliError('usage', `The file of the witness, ${witness}, does not exist.`)
  const { readNotes, verifySharedAudit } = await import('@toolgate/stores/verify')
  const verdict = await verifySharedAudit(source, {
    maxFindings: json ? 1000 : SHOWN,
    verifiers: publicKey === undefined ? undefined : readKeys(publicKey),
    witness: witness === undefined ? undefined : readNotes(witness),
  })
  if (json) printJson(io.stdout, verdict)
  else printShared(verdict, publicKey === undefined, io)
  return verdict.status
}

function printShared(verdict: SharedVerdict, areKeysOwn: boolean, io: Io): void {
  const { status, records, chains, checkpoints, witness, findings, findingCount } = verdict
  const [style, title] = VERDICTS[status]
  const paint = painter(io.stdout, io.env)
  printLine(io.stdout, `${paint(style, title)}  ${countOf(records, 'record')} in ${countOf(chains.length, 'chain')}`)
  for (const { text } of findings) printLine(io.stdout, `  ${printable(text)}`)
  if (findingCount > findings.length) printLine(io.stdout, `  and ${findingCount - findings.length} more`)
  for (const { replica, incarnation, state, lastSeq, signedSeq, unshipped = 0 } of chains)
    printLine(
      io.stdout,
      `  ${printable(replica)}${replica === OPENERS_CHAIN ? ' (no replica: the command, which opened inputs)' : ''}, start ${printable(incarnation)}: ${state}, ${lastSeq} records, signed up to ${signedSeq}${unshipped > 0 ? `; at least ${unshipped} more are on its disk` : ''}`,
    )
  const sealed = inputsText(verdict.inputs)
  if (sealed !== undefined) printLine(io.stdout, sealed)
  const { count, size, lastTs = '', keys } = checkpoints
  printLine(
    io.stdout,
    count === 0
      ? 'No checkpoint signs it yet.'
      : `${countOf(count, 'checkpoint')} over ${size} leaves, the last of ${printable(lastTs)}.`,
  )
  if (areKeysOwn && keys.length > 0) {
    printLine(io.stdout, 'The audit itself names its keys. Keep them elsewhere, and give them with --public-key:')
    for (const key of keys) printLine(io.stdout, `  ${printable(key)}`)
  }
  if (witness !== undefined)
    printLine(
      io.stdout,
      `The witness has ${countOf(witness.count, 'checkpoint')}, the last over ${witness.size} leaves.`,
    )
}

/** `toolgate audit export --folder`: writes the audit of all replicas to a folder, which `audit verify --offline` reads. */
export async function exportShared(folder: string, options: SharedAuditCommandOptions, io: Io): Promise<ExitName> {
  const { exportSharedAudit } = await import('@toolgate/stores/verify')
  const written = await withSharedAudit(options, io, (source) => exportSharedAudit(source, folder))
  if (written === undefined)
    throw new CliError('usage', 'Only an audit that replicas share is exported to a folder.', {
      hint: 'An audit in files is a file: copy it, with "toolgate backup".',
    })
  const { records, inputs } = written
  if (options.json) printJson(io.stdout, { folder, records, inputs })
  else {
    printLine(io.stdout, `${countOf(records, 'record')} in ${printable(folder)}`)
    if (inputs > 0)
      printLine(io.stdout, `${countOf(inputs, 'sealed input')}, still sealed: no one reads them without the key.`)
  }
  return 'ok'
}

/** Returns the trusted keys of logs in a file, one per line. */
export function readKeys(file: string): readonly string[] {
  return readInput(file, 'public key').split('\n').filter(Boolean)
}
