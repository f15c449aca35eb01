import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { ToolgateError } from '@toolgate/core'
import {
  checkGrowthProof,
  checkTlogProof,
  createNoteVerifier,
  formatGrowthProof,
  formatTlogProof,
  type NoteVerifier,
  openNote,
  parseGrowthProof,
  parseTlogProof,
  TLOG_PROOF,
  type TlogProof,
} from '@toolgate/core/audit'
import type { AuditSource } from '@toolgate/stores/verify'
import { readOwnJson } from '@toolgate/values/json'
import { CliError, type ExitName } from '../exit.ts'
import { writeOutput } from '../new-file.ts'
import { type Io, printable, printLine } from '../io.ts'
import { countOf, readInput } from './audit-common.ts'
import { readKeys, type SharedAuditCommandOptions, withSharedAudit } from './audit-shared.ts'
import { placesOf, refuse } from './audit-verify.ts'
import { nextCommand } from '../next-command.ts'

export interface AuditProveOptions extends SharedAuditCommandOptions {
  readonly checkpoints?: string
  readonly call?: string
  /** The `seq` of a record, as in lists of records. */
  readonly record?: number
  /** A file with an earlier checkpoint. */
  readonly from?: string
  /** A folder to which the proofs are written. */
  readonly out?: string
}

/** A proof as it is written. */
interface ProofFile {
  readonly name: string
  readonly text: string
}

interface Proved {
  readonly files: readonly ProofFile[]
  /** The number of records that no checkpoint has signed yet. */
  readonly unsigned: number
  /** Why the audit proves nothing: it was changed. */
  readonly changed?: ToolgateError
}

/** `toolgate audit prove`: prints the proofs of records, or the proof that the log extends an earlier checkpoint. */
export async function auditProveCommand(options: AuditProveOptions, io: Io): Promise<ExitName> {
  const { from, out } = options
  const old = from === undefined ? undefined : readInput(from, 'earlier checkpoint')
  const { files, unsigned, changed } = await proveIn(options, io, (source) => prove(source, options, old))
  if (changed !== undefined)
    throw new CliError('tampered', changed.message, {
      hint: `Run: ${nextCommand('audit verify', options)}`,
      cause: changed,
    })
  for (const { name, text } of files) {
    if (out === undefined) io.stdout.write(text)
    else writeProof(out, name, text, io)
  }
  if (unsigned > 0) printLine(io.stderr, `No checkpoint has signed ${countOf(unsigned, 'record')} of this yet.`)
  else if (files.length === 0) printLine(io.stderr, 'The audit has no such record.')
  return files.length > 0 ? 'ok' : 'no'
}

/** Runs `use` with the audit that the options name. */
async function proveIn(
  options: AuditProveOptions,
  io: Io,
  use: (source: AuditSource) => Promise<Proved>,
): Promise<Proved> {
  const shared = await withSharedAudit(options, io, (source) => {
    refuse(options, ['checkpoints', 'publicKey'], 'files')
    return use(source)
  })
  if (shared !== undefined) return shared
  const { withAuditFile } = await import('@toolgate/stores/verify')
  return withAuditFile(placesOf(options, io), use)
}

async function prove(source: AuditSource, options: AuditProveOptions, old: string | undefined): Promise<Proved> {
  try {
    return old === undefined ? await proveSought(source, options) : await proveFrom(source, old)
  } catch (error) {
    if (!(error instanceof ToolgateError) || error.code !== 'audit_invalid') throw error
    return { files: [], unsigned: 0, changed: error }
  }
}

async function proveFrom(source: AuditSource, old: string): Promise<Proved> {
  const { proveGrowth } = await import('@toolgate/stores/verify')
  const text = formatGrowthProof(await proveGrowth(source, old))
  return { files: [{ name: 'growth.add-checkpoint', text }], unsigned: 0 }
}

async function proveSought(source: AuditSource, { call, record }: AuditProveOptions): Promise<Proved> {
  const { proveRecords } = await import('@toolgate/stores/verify')
  const { proofs, unsigned } = await proveRecords(source, call === undefined ? { place: record ?? 0 } : { call })
  return { files: proofs.map((proof) => ({ name: nameOf(proof), text: formatTlogProof(proof) })), unsigned }
}

function nameOf({ record }: TlogProof): string {
  const { seq, hash } = readOwnJson(record) as { seq: number; hash: string }
  return `${seq}-${hash.slice(0, 16)}.tlog-proof`
}

function writeProof(folder: string, name: string, text: string, io: Io): void {
  mkdirSync(folder, { recursive: true })
  const file = path.join(folder, name)
  writeOutput(file, text)
  printLine(io.stdout, file)
}

export interface CheckProofOptions {
  readonly publicKey: string
  /** A file with the earlier checkpoint of a growth proof. */
  readonly from?: string
}

/** `toolgate audit check-proof`: checks each proof in a file. */
export function auditCheckProofCommand(file: string, { publicKey, from }: CheckProofOptions, io: Io): ExitName {
  const text = readInput(file, 'proof')
  const keys = readKeys(publicKey).map((key) => createNoteVerifier(key))
  if (text.startsWith('old ')) return checkGrowth(text, { keys, from }, io)
  let exit: ExitName = 'ok'
  const [first = '', ...others] = text.split(`${TLOG_PROOF}\n`)
  for (const part of first === '' ? others : [first, ...others]) {
    const proof = parseTlogProof(`${TLOG_PROOF}\n${part}`)
    const problem = proof === undefined ? 'it is not a proof of a record' : checkTlogProof(proof, keys)
    if (problem !== undefined) exit = 'no'
    printLine(
      io.stdout,
      problem === undefined ? `holds  ${printable(proof?.record ?? '')}` : `does not hold: ${problem}`,
    )
  }
  return exit
}

function checkGrowth(
  text: string,
  { keys, from }: { readonly keys: readonly NoteVerifier[]; readonly from: string | undefined },
  io: Io,
): ExitName {
  if (from === undefined) throw new CliError('usage', 'Name the earlier checkpoint with --from.')
  const old = openNote(readInput(from, 'earlier checkpoint'), keys)
  const proof = parseGrowthProof(text)
  const problem =
    old === undefined
      ? 'no trusted key signed the earlier checkpoint'
      : proof === undefined
        ? 'it is not a proof'
        : checkGrowthProof(proof, old, keys)
  printLine(io.stdout, problem === undefined ? `holds  from ${old?.size} leaves on` : `does not hold: ${problem}`)
  return problem === undefined ? 'ok' : 'no'
}
