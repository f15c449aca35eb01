import { createHash } from 'node:crypto'
import type { AuditReader, AuditRecord } from '@toolgate/core/audit'
import { CliError, type ExitName } from '../exit.ts'
import { type Io, printable, printJson, printLine } from '../io.ts'
import { type AuditOptions, withReader } from './audit.ts'

const PAGE = 1000
/** As little of a hash as names one. */
const LEAST_DIGITS = 8

/** `toolgate audit policy <hash>`: the policies and groups with that hash, as they were recorded. Ends with `no` where there are none. */
export function auditPolicyCommand(hash: string, options: AuditOptions, io: Io): Promise<ExitName> {
  if (!/^[0-9a-f]{1,64}$/.test(hash) || hash.length < LEAST_DIGITS)
    throw new CliError('usage', `${printable(hash)} is not a policy_hash: give 8 to 64 hex digits of one.`)
  return withReader(options, io, async (reader) => {
    const record = await findPolicy(reader, hash)
    if (record?.policy === undefined) {
      printLine(io.stderr, `The audit has no policy with the hash ${hash}.`)
      return 'no'
    }
    if (createHash('sha256').update(record.policy).digest('hex') !== record.policy_hash)
      throw new CliError('tampered', `Record ${record.seq} does not have the policy that its hash names.`)
    printJson(io.stdout, JSON.parse(record.policy))
    return 'ok'
  })
}

async function findPolicy(reader: AuditReader, hash: string): Promise<AuditRecord | undefined> {
  for (let beforeSeq: number | undefined; ;) {
    const before = beforeSeq === undefined ? {} : { beforeSeq }
    const records = await reader.query({ event: 'policy_recorded', limit: PAGE, ...before })
    const found = records.find((record) => record.policy_hash?.startsWith(hash))
    if (found !== undefined || records.length < PAGE) return found
    beforeSeq = records.at(-1)?.seq
  }
}
