import type { AuditFinding, AuditVerdict } from '@toolgate/core/audit'
import { loadConfig } from '@toolgate/gateway'
import type { VerifyAuditOptions } from '@toolgate/stores/verify'
import { CliError, type ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { countOf, inputsText, VERDICTS } from './audit-common.ts'
import { readKeys, type SharedVerifyOptions, verifyShared, withSharedAudit } from './audit-shared.ts'

export interface AuditVerifyOptions extends SharedVerifyOptions {
  readonly checkpoints?: string
  /** A record that a checkpoint must have signed, to detect a truncated audit. */
  readonly signed?: number
}

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

/** Returns the paths of an audit in a file, from the options or the configuration. */
export function placesOf(options: Omit<AuditVerifyOptions, 'signed' | 'witness'>, io: Io): VerifyAuditOptions {
  const { file, checkpoints, publicKey } = options
  return {
    ...(file === undefined ? configuredPlaces(options.config, io) : { path: file }),
    ...(checkpoints === undefined ? {} : { checkpoints, mustBeSigned: true }),
    ...(publicKey === undefined ? {} : { verifiers: readKeys(publicKey) }),
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
export function refuse(options: object, names: readonly string[], kind: keyof typeof KINDS): void {
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
