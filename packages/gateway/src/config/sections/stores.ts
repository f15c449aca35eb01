import * as z from 'zod'
import { has, reportIn } from '../reading.ts'
import type { Written } from '../schema/values.ts'
import { plain, type Section } from '../section.ts'

/** The id of a replica. */
const REPLICA_ID = /^[A-Za-z0-9][\w.-]{0,62}$/

/** A URL of an engine. It may contain a password, so no message quotes it. */
function engineUrl(schemes: readonly string[], example: string) {
  return z.string().superRefine((url, ctx) => {
    const isUrl = URL.canParse(url) && schemes.includes(new URL(url).protocol)
    if (!isUrl) reportIn(ctx, [], `found another text, expected a URL such as ${example}`)
  })
}

const storesSchema = z
  .strictObject({
    postgres: engineUrl(['postgres:', 'postgresql:'], 'postgres://toolgate@db.example.com/toolgate').describe(
      'The database that all replicas share, at its primary.',
    ),
    redis: engineUrl(['redis:', 'rediss:'], 'rediss://cache.example.com:6379')
      .describe('Counts the limits. Default: the database does.')
      .exactOptional(),
  })
  .describe('The engines that several gateways share, which then give the same answers.')

const replicaSchema = z
  .strictObject({
    id: z
      .string()
      .regex(REPLICA_ID, '1 to 63 letters, digits, ".", "_" and "-", and a letter or digit first')
      .describe('Its name among the replicas. Default: the name of the host, and a random part.')
      .exactOptional(),
    url: z
      .string()
      .refine(
        (url) => URL.canParse(url) && /^https?:/.test(url) && new URL(url).origin === url,
        'an origin, such as http://10.0.0.7:8787',
      )
      .describe('Where the other replicas reach this one.')
      .exactOptional(),
  })
  .describe('This gateway among several that share stores.')

/** The databases that replicas share. Both URLs may contain a password. */
export type StoresConfig = Written<typeof storesSchema>
/** The name of this replica, and the origin at which other replicas reach it. */
export type ReplicaConfig = Written<typeof replicaSchema>

export const stores: Section<StoresConfig> = plain(storesSchema)

const written = plain(replicaSchema)

export const replica: Section<ReplicaConfig> = {
  ...written,
  read(reading, key) {
    const { source } = reading
    if (has(source, [key]) && !has(source, ['stores']))
      source.report([key], 'found a replica without stores, expected "stores" with the database that replicas share', {
        atKey: true,
      })
    return written.read(reading, key)
  },
}

/** The minimum length of a masked password. Shorter ones would mask words in every text. */
const MIN_LENGTH = 6

/** Returns the passwords in the URLs of the databases. */
export function storeSecrets({ postgres, redis }: Partial<StoresConfig> = {}): readonly string[] {
  return [postgres, redis].flatMap((url) => {
    const { password = '' } = url === undefined ? {} : new URL(url)
    return [password, decoded(password)].filter(({ length }) => length >= MIN_LENGTH)
  })
}

function decoded(password: string): string {
  try {
    return decodeURIComponent(password)
  } catch {
    return password
  }
}
