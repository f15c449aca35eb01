import type { ReplicaRowBody, ReplicasBody } from './wire.ts'

type ReplicaStatusWord = 'takes calls' | 'refuses' | 'stopping' | 'lost'

/** Returns whether a replica accepts calls. A lost replica starts none, because its lease has expired. */
export function wordOfReplica({ isLive, isStopping, refuses }: ReplicaRowBody): ReplicaStatusWord {
  if (!isLive) return 'lost'
  if (isStopping) return 'stopping'
  return refuses === undefined ? 'takes calls' : 'refuses'
}

/** Returns sentences about the differences between a replica and the published configuration. */
export function differencesOf(row: ReplicaRowBody, { self }: ReplicasBody): readonly string[] {
  const published = self?.configuration.id
  const own = row.configuration?.id
  return [
    ...(own !== undefined && published !== undefined && own !== published ? [`runs ${own}, not ${published}`] : []),
    ...(row.file === 'invalid' ? ['its file is invalid'] : []),
    ...(row.file !== undefined && row.file !== 'invalid' ? [`its file is another one, ${row.file}`] : []),
  ]
}
