import { systemClock } from '../memory/clock.ts'
import type { AvailabilitySource, Clock, GroupState, ProbeState } from '../ports/ports.ts'
import { type GroupsInput, parseGroups, toGroupMap } from '../tools/groups.ts'
import { checkShape, createEmitter, shapeOf } from '@toolgate/values'
import { Probes } from './probes.ts'
import { createStates } from './states.ts'
import { createChanges, type GroupChange } from './changes.ts'

export interface AvailabilityOptions {
  readonly clock?: Clock
  /** Returns a number from 0 up to 1, for the jitter of background checks. */
  readonly random?: () => number
  /** Receives errors of listeners. Default: ignores them. */
  readonly onFault?: (error: unknown) => void
}

const OPTIONS = shapeOf<AvailabilityOptions>({ clock: true, random: true, onFault: true })

/** The availability of groups by the last probe results. Calls never wait for a probe. */
export interface Availability extends AvailabilitySource {
  /** Grows synchronously with every change. */
  readonly revision: number
  /** Returns the state of every group, by name. */
  states(): ReadonlyMap<string, GroupState>
  probesOf(group: string): readonly ProbeState[] | undefined
  /**
   * Calls the listener when groups change: for each group at the first change, then with its latest state at most once
   * a second. Returns a function that ends the subscription.
   */
  subscribe(listener: (changes: readonly GroupChange[]) => void): () => void
  /** Runs every probe without a result, or with one older than its time to live. A probe never runs twice at a time. */
  check(): Promise<void>
  /** Starts running probes in the background. Resolves when each has run once. */
  start(): Promise<void>
  /**
   * Replaces the groups. Probes that stay keep their results, and run as before.
   *
   * @throws {ConfigError} and changes nothing, for invalid groups
   */
  replace(groups: GroupsInput): void
  /** Stops all probes. The last results stay. */
  close(): void
}

/**
 * Returns the availability of groups by their probes.
 *
 * A group is available while all its probes succeed and all groups it depends on are available. Until its probes have run,
 * a group is `unknown`, and its tools are not listed.
 *
 * @throws {ConfigError} for invalid groups, such as an unknown dependency or a cycle
 * @example
 * const groups = { gpu: { tools: ['gpu:*'], availableWhen: [() => driver.isLoaded()] } }
 * const availability = createAvailability(groups)
 * await availability.start()
 * const gate = createGate({ tools, groups, availability })
 */
export function createAvailability(groups: GroupsInput, options: AvailabilityOptions = {}): Availability {
  checkShape('createAvailability', options, OPTIONS)
  return openAvailability(groups, options, () => {})
}

/** Like `createAvailability`, and calls `onChange` synchronously after each change. */
export function openAvailability(
  groups: GroupsInput,
  options: AvailabilityOptions,
  onChange: () => void,
): Availability {
  const { clock = systemClock, random = Math.random, onFault = () => {} } = options
  parseGroups(groups)
  let byName = toGroupMap(groups)
  const emitter = createEmitter<[changes: readonly GroupChange[]]>(onFault)
  const probes = new Probes(byName, { clock, random, onResult: (affected) => settle(affected) })
  const resultsOf = (group: string) => probes.of(group)
  let states = createStates(byName, resultsOf, clock)
  const changes = createChanges(clock, () => states.all, emitter.emit)

  function settle(affected: Iterable<string>): void {
    const changed = states.settle(affected)
    if (changed.length === 0) return
    availability.revision++
    onChange()
    changes.add(changed)
  }

  const availability: Omit<Availability, 'revision'> & { revision: number } = {
    revision: 1,
    get: (group) => states.all.get(group),
    states: () => states.all,
    probesOf: (group) => (byName.has(group) ? probes.of(group).map((probe) => probe.state()) : undefined),
    subscribe: emitter.subscribe,
    check: () => probes.check(),
    replace(next) {
      parseGroups(next)
      const before = states.all
      byName = toGroupMap(next)
      probes.replace(byName)
      states = createStates(byName, resultsOf, clock, before)
      availability.revision++
      onChange()
      changes.add([...states.all.keys()])
    },
    start() {
      probes.start()
      return probes.check()
    },
    close() {
      probes.close()
      changes.close()
    },
  }
  return availability
}
