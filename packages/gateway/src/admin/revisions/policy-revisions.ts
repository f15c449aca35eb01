import { sha256Hex } from '@toolgate/values'
import { isObject } from '@toolgate/values/json'
import type { StateStore } from '@toolgate/core/stores'
import type { GatewayConfig } from '../../config/config.ts'
import { type PolicySource, replaceSection } from '../../config/places.ts'
import { readText } from '../../config/load-config.ts'
import type { PolicyRevisionCause } from '../../model/revisions.ts'

/** A policy that was in force, as it was written in the file. Times are wall-clock milliseconds. */
export interface PolicyRevision {
  readonly revision: number
  readonly text: string
  readonly at: number
  readonly by?: string
  readonly through: PolicyRevisionCause
  readonly restores?: number
}

/** An earlier policy that applies in place of that of the file, as long as the file has the policy with this hash. */
interface RestoredPolicy {
  readonly revision: number
  readonly text: string
  readonly insteadOf: string
  readonly at: number
  readonly by?: string
}

/** Reads a configuration from a text in place of the text of its file. */
type ReadText = (text: string) => Promise<GatewayConfig>

const PREFIX = 'policy:revision/'
const RESTORED = 'policy:restored'
const DIGITS = 10
const MAX_KEPT = 50

/** The policies that were in force, and the one that a person restored. All replicas share them. */
export class PolicyRevisions {
  readonly #state: StateStore

  constructor(state: StateStore) {
    this.#state = state
  }

  /** Returns the policies that were in force, the latest first. */
  async list(): Promise<readonly PolicyRevision[]> {
    const entries = await this.#state.list(PREFIX)
    return entries.flatMap(({ key, value }) => toRevision(key, value)).toReversed()
  }

  /** Records the policy in force, unless it is already the latest one. Of several replicas, one records it. */
  async note({ text }: PolicySource, how: Omit<PolicyRevision, 'revision' | 'text'>): Promise<void> {
    for (;;) {
      const known = await this.list()
      const [latest] = known
      if (latest?.text === text) return
      const key = PREFIX + String((latest?.revision ?? 0) + 1).padStart(DIGITS, '0')
      if (!(await this.#state.add(key, { ...how, text }))) continue
      for (const old of known.slice(MAX_KEPT - 1))
        await this.#state.take(PREFIX + String(old.revision).padStart(DIGITS, '0'))
      return
    }
  }

  async restored(): Promise<RestoredPolicy | undefined> {
    return toRestored(await this.#state.get(RESTORED))
  }

  /** Keeps which policy was restored, over restarts. `undefined`: the policy of the file applies. */
  async keep(restored: RestoredPolicy | undefined): Promise<void> {
    await (restored ? this.#state.set(RESTORED, restored) : this.#state.take(RESTORED))
  }

  /** Returns the configuration of the file, with the restored policy while the file still has the policy that it replaces. */
  async applyTo(file: GatewayConfig, read: ReadText): Promise<GatewayConfig> {
    const restored = await this.restored()
    return restored && hashOfPolicy(file) === restored.insteadOf ? withRestored(file, restored, read) : file
  }
}

/** Returns the hash of the policy of a file; `undefined` if its text is not known. */
export function hashOfPolicy({ policySource }: Pick<GatewayConfig, 'policySource'>): string | undefined {
  return policySource && sha256Hex(policySource.text)
}

/** Returns the configuration of a file with an earlier policy in place of its own. */
export async function withRestored(
  file: GatewayConfig,
  { revision, text }: Pick<RestoredPolicy, 'revision' | 'text'>,
  read: ReadText,
): Promise<GatewayConfig> {
  const own = file.policySource
  const config = await read(replaceSection(file.text ?? readText(file.file), own, text))
  const { places = new Map(), policySource } = config
  const shown = [...places].map(([path, place]) => {
    const isPolicy = path.startsWith('policy[')
    return [path, isPolicy ? { ...place, file: `${place.file} (policy revision ${revision})` } : place] as const
  })
  return {
    ...config,
    places: new Map(shown),
    ...(policySource && own && { policySource: { ...policySource, restored: { revision, replaces: own.text } } }),
  }
}

function toRevision(key: string, value: unknown): readonly PolicyRevision[] {
  if (!isObject(value)) return []
  const { text, at, by, through, restores } = value
  if (typeof text !== 'string' || typeof at !== 'number') return []
  return [
    {
      revision: Number(key.slice(PREFIX.length)),
      text,
      at,
      ...(typeof by === 'string' && { by }),
      through: through as PolicyRevisionCause,
      ...(typeof restores === 'number' && { restores }),
    },
  ]
}

function toRestored(value: unknown): RestoredPolicy | undefined {
  if (!isObject(value)) return undefined
  const { revision, text, insteadOf, at, by } = value
  if (typeof revision !== 'number' || typeof text !== 'string') return undefined
  if (typeof insteadOf !== 'string' || typeof at !== 'number') return undefined
  return { revision, text, insteadOf, at, ...(typeof by === 'string' && { by }) }
}
