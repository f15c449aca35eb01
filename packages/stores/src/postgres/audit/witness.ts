import { ConfigError } from '@toolgate/core'
import { createNoteVerifier, createWitnessVerifier } from '@toolgate/core/audit'
import { messageOf } from '@toolgate/values'
import type { PostgresDatabase } from '../database.ts'
import { WitnessClient } from './witness-client.ts'
import { WitnessFile } from './witness-file.ts'

/** The witnesses of each signed note of the log, outside the database. */
export interface WitnessOptions {
  /** A file to which each note is appended. Each replica has its own. */
  readonly file?: string
  /** The submission prefix of a C2SP `tlog-witness`. */
  readonly url?: string
  /** The public key of the witness at `url`, `name+id+key`. */
  readonly key?: string
}

export interface Witness {
  /** Why the witness does not have the newest note. */
  readonly problem: string | undefined
  /** Sends the witness the missing notes. Never rejects. `hasSigned`: this process has just signed. */
  round(hasSigned: boolean): Promise<void>
  close(): Promise<void>
}

/** @throws {ConfigError} for a file that cannot be written, and for a URL without the key of its witness */
export async function openWitness(
  db: PostgresDatabase,
  { file, url, key }: WitnessOptions,
  { verifierKey, onFault }: { readonly verifierKey: string; readonly onFault: (error: unknown) => void },
): Promise<Witness> {
  const verifier = createNoteVerifier(verifierKey)
  if ((url === undefined) !== (key === undefined))
    throw new ConfigError('', 'the witness needs both its url and its key')
  const client = url && key ? new WitnessClient({ db, url, witness: createWitnessVerifier(key), verifier }) : undefined
  const kept = file === undefined ? undefined : await openFile(file, { db, verifier })
  let failure: unknown
  return {
    get problem() {
      return failure === undefined ? undefined : messageOf(failure)
    },
    async round(hasSigned) {
      const before = failure
      const ended = await Promise.allSettled([kept?.follow(), hasSigned ? client?.submit() : undefined])
      failure = ended.find((one) => one.status === 'rejected')?.reason
      if (failure !== undefined && before === undefined) onFault(failure)
    },
    close: async () => kept?.close(),
  }
}

async function openFile(path: string, from: Parameters<typeof WitnessFile.open>[1]): Promise<WitnessFile> {
  try {
    return await WitnessFile.open(path, from)
  } catch (cause) {
    throw new ConfigError('', `the file of the witness, ${path}, cannot be written: ${messageOf(cause)}`, { cause })
  }
}
