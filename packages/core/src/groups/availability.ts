import { catchRejection } from '../util/async.ts'
import { systemClock } from '../memory/clock.ts'
import type { AvailabilitySource, Clock, GroupState, ProbeState } from '../ports.ts'
import { type GroupsInput, parseGroups, toGroupMap } from '../tools/groups.ts'
import { checkShape, shapeOf } from '../util/shape.ts'
import { toProbeState } from './probe-state.ts'
import { createQuestions, type Question } from './questions.ts'
import { createStates } from './states.ts'
import { createTelling, type GroupChange } from './telling.ts'

export interface AvailabilityOptions {
  readonly clock?: Clock
  /** From 0 up to 1, for the jitter of the background. */
  readonly random?: () => number
  /** Hears of listeners that throw. Default: ignores them. */
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
   * Tells of changes: of one group the first at once, and then what it has come to, at most once a second. Gives the
   * way to end it.
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
  const listeners = new Set<(changes: readonly GroupChange[]) => void>()
  const dependents = new Map<Question, string[]>()
  const questions = createQuestions(byName, { clock, random, onAnswer: (question) => settle(question) })
  for (const name of byName.keys()) {
    for (const question of new Set(questions.of(name))) {
      const names = dependents.get(question)
      if (names) names.push(name)
      else dependents.set(question, [name])
    }
  }
  const states = createStates(byName, questions.of, clock)
  const telling = createTelling({ clock, states: states.all, tell })
  let revision = 1

  function settle(question: Question): void {
    const changed = states.settle(dependents.get(question) ?? [])
    if (changed.length === 0) return
    revision++
    telling.changed(changed)
  }

  function tell(changes: readonly GroupChange[]): void {
    for (const listener of listeners) {
      try {
        catchRejection(listener(changes), onFault)
      } catch (error) {
        onFault(error)
      }
    }
  }

  return {
    get revision() {
      return revision
    },
    get: (group) => states.all.get(group),
    states: () => states.all,
    probesOf: (group) => (byName.has(group) ? questions.of(group).map(toProbeState) : undefined),
    subscribe(listener) {
      // A function of its own, so that one who subscribes twice is told twice and leaves once.
      const own = (changes: readonly GroupChange[]) => listener(changes)
      listeners.add(own)
      return () => void listeners.delete(own)
    },
    check: questions.check,
    start() {
      questions.start()
      return questions.check()
    },
    close() {
      questions.close()
      telling.close()
    },
  }
}
