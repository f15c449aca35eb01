import {
  type AuditFinding,
  type AuditVerdict,
  checkProof,
  parseVerifyingKey,
  type RecordProof,
} from '@toolgate/core/audit'
import { loadConfig } from '@toolgate/gateway'
import type { VerifyAuditOptions } from '@toolgate/stores/verify'
import { CliError, type ExitName } from '../exit.ts'
import { parseObject } from '../json.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { countOf, inputsText, readInput, VERDICTS } from './audit-common.ts'
import {
  checkSharedProofs,
  isSharedProof,
  proveShared,
  type SharedProveOptions,
  type SharedVerifyOptions,
  verifyShared,
  withSharedAudit,
} from './audit-shared.ts'

export interface AuditVerifyOptions extends SharedVerifyOptions {
  readonly checkpoints?: string
  /** A record that a checkpoint must have signed, to detect a truncated audit. */
  readonly signed?: number
}

export type AuditProveOptions = Omit<AuditVerifyOptions, 'signed'> & SharedProveOptions

const SHOWN = 20

/** `toolgate audit verify`: checks the audit. The exit code names the problem. */
export async function auditVerifyCommand(options: AuditVerifyOptions, io: Io): Promise<ExitName> {
  const exit = await withSharedAudit(options, io, (source) => {
    refuse(options, ['signed', 'checkpoints'], 'files')
    return verifyShared(source, options, io)
  })
  if (exit !== undefined) return exit
  refuse(options, ['witness'], 'replicas')
  const { verifyAudit } = await import('@toolgate/stores/verify')
  const verdict = await verifyAudit({ ...placesOf(options, io), maxFindings: options.json ? 1000 : SHOWN })
  if (options.json) printJson(io.stdout, verdict)
  else printVerdict(verdict, io)
  const { signed = 0 } = options
  if (verdict.status !== 'ok' || verdict.checkpoints.lastSeq >= signed) return verdict.status
  printLine(io.stderr, `Record ${signed} is not signed: checkpoints go up to ${verdict.checkpoints.lastSeq}.`)
  return 'gap'
}

/** `toolgate audit prove`: prints the proofs that the records of a call are in the audit, as JSON lines. */
export async function auditProveCommand(options: AuditProveOptions, io: Io): Promise<ExitName> {
  const exit = await withSharedAudit(options, io, (source) => {
    refuse(options, ['checkpoints', 'publicKey'], 'files')
    return proveShared(source, options, io)
  })
  if (exit !== undefined) return exit
  refuse(options, ['record', 'from', 'out'], 'replicas')
  const { call = '' } = options
  const { proveCall } = await import('@toolgate/stores/verify')
  const { proofs, unsigned } = await proveCall(call, placesOf(options, io))
  for (const proof of proofs) printLine(io.stdout, JSON.stringify(proof))
  if (unsigned > 0) printLine(io.stderr, `No checkpoint has signed ${countOf(unsigned, 'record')} of this call yet.`)
  if (proofs.length > 0) return 'ok'
  if (unsigned === 0) printLine(io.stderr, `The audit has no chained record of the call ${JSON.stringify(call)}.`)
  return 'no'
}

export interface CheckProofOptions {
  readonly publicKey: string
  /** A file with the earlier checkpoint of a growth proof. */
  readonly from?: string
}

/** `toolgate audit check-proof`: checks each proof in a file. */
export function auditCheckProofCommand(file: string, options: CheckProofOptions, io: Io): ExitName {
  const { publicKey } = options
  const text = readInput(file, 'proof')
  if (isSharedProof(text)) return checkSharedProofs(text, options, io)
  refuse(options, ['from'], 'replicas')
  const key = parseVerifyingKey(readInput(publicKey, 'public key'))
  let exit: ExitName = 'ok'
  for (const line of text.split('\n').filter(Boolean)) {
    const proof = parseProof(line)
    const problem = proof === undefined ? 'it is not a proof' : checkProof(proof, [key])
    if (problem !== undefined) exit = 'no'
    printLine(
      io.stdout,
      problem === undefined ? `holds  ${printable(proof?.record ?? '')}` : `does not hold: ${problem}`,
    )
  }
  return exit
}

function parseProof(line: string): RecordProof | undefined {
  const proof = parseObject(line)
  if (!proof) return undefined
  const { record, checkpoint, index, leaf, path } = proof
  return typeof record === 'string' &&
    typeof checkpoint === 'string' &&
    typeof index === 'number' &&
    typeof leaf === 'string' &&
    Array.isArray(path)
    ? { record, checkpoint, index, leaf, path }
    : undefined
}

function placesOf(options: AuditVerifyOptions, io: Io): VerifyAuditOptions {
  const { file, checkpoints, publicKey } = options
  return {
    ...(file === undefined ? configuredPlaces(options.config, io) : { path: file }),
    ...(checkpoints === undefined ? {} : { checkpoints, mustBeSigned: true }),
    ...(publicKey === undefined ? {} : { publicKeys: readInput(publicKey, 'public key') }),
  }
}

/**
 * Returns the paths in a configuration. Its checkpoints must exist, because the audit alone cannot show that they are
 * missing.
 */
function configuredPlaces(config: string, { env }: Io): VerifyAuditOptions {
  const {
    audit: { path, checkpoints },
  } = loadConfig(config, { env })
  if (path === undefined)
    throw new CliError('usage', 'The audit of this configuration is kept in memory.', {
      hint: 'Give a file with --file.',
    })
  if (checkpoints === false) return { path, mustBeSigned: false }
  return { path, mustBeSigned: true, checkpoints: checkpoints?.path }
}

/** Throws for options that only the other kind of audit has. */
function refuse(options: object, names: readonly string[], kind: keyof typeof KINDS): void {
  const name = names.find((one) => one in options)?.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  if (name !== undefined)
    throw new CliError('usage', `The option --${name} is for ${KINDS[kind].is}.`, { hint: KINDS[kind].hint })
}

const KINDS = {
  replicas: {
    is: 'an audit that replicas share',
    hint: 'Name its configuration with --config, or an exported one with --offline.',
  },
  files: { is: 'an audit in a file', hint: 'That of replicas is compared with other checkpoints by --witness.' },
} as const

function printVerdict(verdict: AuditVerdict, io: Io): void {
  const { status, records, firstSeq, lastSeq, unchainedBefore, pruned, checkpoints, findings, findingCount } = verdict
  const paint = painter(io.stdout, io.env)
  const [style, title] = VERDICTS[status]
  printLine(io.stdout, `${paint(style, title)}  ${countOf(records, 'record')}, the last is ${lastSeq}`)
  for (const finding of findings) printLine(io.stdout, `  ${whereOf(finding)}: ${printable(finding.text)}`)
  if (findingCount > findings.length) printLine(io.stdout, `  and ${findingCount - findings.length} more`)
  const sealed = inputsText(verdict.inputs)
  if (sealed !== undefined) printLine(io.stdout, sealed)
  if (status === 'unsigned')
    printLine(io.stdout, 'If the checkpoints are elsewhere, name them with --checkpoints, or with --config.')
  if (pruned !== undefined)
    printLine(
      io.stdout,
      `It begins at record ${firstSeq}. Retention removed the others up to ${pruned.seq}, which checkpoint ${pruned.checkpoint} of ${printable(pruned.ts)} had signed.`,
    )
  if (unchainedBefore !== undefined)
    printLine(
      io.stdout,
      `Unchained before record ${unchainedBefore}: an earlier version wrote those, and they cannot be verified.`,
    )
  printLine(
    io.stdout,
    checkpoints.count === 0
      ? 'No checkpoint signs it: a truncated end or a complete rewrite would not be noticed.'
      : `${countOf(checkpoints.count, 'checkpoint')} up to record ${checkpoints.lastSeq}, the last of ${printable(checkpoints.lastTs ?? '')}.`,
  )
  if (checkpoints.count > 0 && lastSeq > checkpoints.lastSeq)
    printLine(
      io.stdout,
      `${paint('yellow', 'Not signed yet')}: the records after ${checkpoints.lastSeq}. Anyone who can write the file could have written them.`,
    )
}

function whereOf({ line, checkpoint }: AuditFinding): string {
  if (line !== undefined) return `line ${line}`
  return checkpoint === undefined ? 'checkpoints' : `checkpoint ${checkpoint}`
}
