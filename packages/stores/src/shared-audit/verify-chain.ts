import { type AuditVerdict, type AuditVerifier, createVerifier, readSeq, type SignedPoint } from '@toolgate/core/audit'
import { hasInput, type KeptChain, type KeptRecord, type AuditSource } from './source.ts'

interface VerifyChainOptions {
  /** The signed ends of the chain, oldest first. */
  readonly signed: readonly SignedPoint[]
  /** The text of a finding for an audit without checkpoints. Absent if it needs none. */
  readonly missing?: string | undefined
  readonly maxFindings: number
  /** Returns what is known when all records were read. */
  readonly end: () => Parameters<AuditVerifier['finish']>[0]
}

/** The maximum number of records whose inputs are in memory at once. One input may have megabytes. */
const INPUTS = 20

/** Verifies the records of a chain against what the log says about it. */
export async function verifyChain(
  source: AuditSource,
  chain: KeptChain,
  { end, ...options }: VerifyChainOptions,
): Promise<AuditVerdict> {
  const verifier = createVerifier(options)
  for await (const page of source.records(chain))
    for await (const part of withBoxes(source, chain, page))
      for (const { text, problem, box } of part) {
        verifier.add(text, box)
        if (problem !== undefined) verifier.report(problem)
      }
  return verifier.finish(end())
}

/** A record with its sealed input: `null` if it is missing, absent if the record has none. */
type BoxedText = KeptRecord & { readonly box?: string | null }

async function* withBoxes(
  source: AuditSource,
  chain: KeptChain,
  page: readonly KeptRecord[],
): AsyncGenerator<readonly BoxedText[]> {
  if (!page.some(({ text }) => hasInput(text))) {
    yield page
    return
  }
  for (let at = 0; at < page.length; at += INPUTS) {
    const part = page.slice(at, at + INPUTS)
    const seqs = part.flatMap(({ text }) => (hasInput(text) ? [readSeq(text)] : []))
    const boxes = await source.boxes(chain, seqs)
    yield part.map((one) => (hasInput(one.text) ? { ...one, box: boxes.get(readSeq(one.text)) ?? null } : one))
  }
}
