import { systemClock } from '../memory/clock.ts'
import type { AvailabilitySource, Clock, GroupState, ProbeState } from '../ports.ts'
import { type GroupsInput, parseGroups, toGroupMap } from '../tools/groups.ts'
import { createEmitter } from '../util/emitter.ts'
import { checkShape, shapeOf } from '../util/shape.ts'
import { Probes } from './probes.ts'
import { createStates } from './states.ts'
import { createChanges, type GroupChange } from './changes.ts'

export interface AvailabilityOptions {
  readonly clock?: Clock
  /** From 0 up to 1, for the jitter of the background. */
  readonly random?: () => number
  /** Receives what listeners throw. Default: ignores it. */
  readonly onFault?: (error: unknown) => void
}

const OPTIONS = shapeOf<AvailabilityOptions>({ clock: true, random: true, onFault: true })

/** Watches what groups depend on. What it says is the last answer: nobody ever waits for a probe. */
export interface Availability extends AvailabilitySource {
  /** Grows when anything is another than it was, at once. */
  readonly revision: number
  /** Of every group, by name. */
  states(): ReadonlyMap<string, GroupState>
  probesOf(group: string): readonly ProbeState[] | undefined
  /**
   * Calls the listener when groups change: for one group at the first change, and then with its latest state, at most
   * once a second. Returns a function that ends it.
   */
  subscribe(listener: (changes: readonly GroupChange[]) => void): () => void
  /** Asks what has no answer, or one older than its time to live. One ask of a probe at a time, for all who want it. */
  check(): Promise<void>
  /** Begins to ask in the background. Resolves when everything has been asked once. */
  start(): Promise<void>
  /** Ends the background and the probes under way. What was known stays. */
  close(): void
}

/**
 * Gives what watches the probes of groups.
 *
 * A group is available while all its probes are answered and all groups it depends on are available. Until it was
 * asked, one with probes is `unknown`, which is not offered either.
 *
 * @throws {ConfigError} for groups that cannot be used, such as a dependency that is not known, or a cycle
 * @example
 * const groups = { gpu: { tools: ['gpu:*'], availableWhen: [() => driver.isLoaded()] } }
 * const availability = createAvailability(groups)
 * await availability.start()
 * const gate = createGate({ tools, groups, availability })
 */
export function createAvailability(groups: GroupsInput, options: AvailabilityOptions = {}): Availability {
  checkShape('createAvailability', options, OPTIONS)
  const { clock = systemClock, random = Math.random, onFault = () => {} } = options
  parseGroups(groups)
  const byName = toGroupMap(groups)
  const emitter = createEmitter<[changes: readonly GroupChange[]]>(onFault)
  const probes = new Probes(byName, { clock, random, onResult: (affected) => settle(affected) })
  const states = createStates(byName, (group) => probes.of(group), clock)
  const changes = createChanges({ clock, states: states.all, emit: emitter.emit })
  let revision = 1

  function settle(affected: Iterable<string>): void {
    const changed = states.settle(affected)
    if (changed.length === 0) return
    revision++
    changes.add(changed)
  }

  return {
    get revision() {
      return revision
    },
    get: (group) => states.all.get(group),
    states: () => states.all,
    probesOf: (group) => (byName.has(group) ? probes.of(group).map((probe) => probe.state()) : undefined),
    subscribe: emitter.subscribe,
    check: () => probes.check(),
    start() {
      probes.start()
      return probes.check()
    },
    close() {
      probes.close()
      changes.close()
    },
  }
}
