import type { HistoryItem } from '../ports/history.ts'
import type { MaybePromise } from '../ports/ports.ts'
import { withKeys } from '../tools/schema-names.ts'
import { isPassingTool } from '../tools/own-tool.ts'
import type { Tool } from '../tools/tool.ts'
import { isObject } from '@toolgate/values/json'
import { type RunFacts, UNTRUSTED } from './facts.ts'
import type { ParsedLabels } from './labels.ts'
import type { Moment, Monitor } from './monitor.ts'
import { type OpenHistory, toHistoryItems } from './open-history.ts'
import { saysNothing } from './origins/worst-of.ts'
import { hashOfTuple, type HistoryRules, valuesOf } from './rules.ts'

/** The histories that contain a call. */
interface CallHistories {
  readonly rules: HistoryRules | undefined
  readonly labels: () => ParsedLabels
  nowMs(): number
  newEvent(): string
}

/** One call in the history of its run: the facts that it may know, and what it adds. */
export class CallHistory {
  readonly event: string
  readonly #histories: CallHistories
  readonly #history: OpenHistory
  #facts: { readonly of: Monitor['mark']; readonly facts: RunFacts | undefined } | undefined
  /** Whether its outputs count as trusted. Set when the call begins. */
  #isTrusted = false
  /** Whether the output of this call was already added by a call that it made. */
  #hasPassed = false

  /** `event`: the event of the call's first round. */
  constructor(histories: CallHistories, history: OpenHistory, event: string | undefined) {
    this.#histories = histories
    this.#history = history
    this.event = event ?? histories.newEvent()
    history.latest = this
  }

  /**
   * Returns the known facts, without those that this call itself added: the same object until something changes.
   * `undefined`: the history is unknown.
   */
  facts(): RunFacts | undefined {
    const { mark } = this.#history.monitor
    if (this.#facts?.of !== mark) this.#facts = { of: mark, facts: this.#read() }
    return this.#facts.facts
  }

  #read(): RunFacts | undefined {
    const { monitor } = this.#history
    const moment = this.#moment()
    const labels = monitor.labels(moment)
    if (labels === undefined) return undefined
    return {
      labels,
      matched: (pattern, values) => monitor.matched(pattern, values, moment),
      origin: (value, work) => monitor.origin(value, moment.nowMs, work),
      raisedBy: (label) => monitor.raisedBy(label),
      matchedBy: (pattern, values) => monitor.matchedBy(pattern, values),
    }
  }

  #moment(): Moment {
    return { event: this.event, nowMs: this.#histories.nowMs() }
  }

  /**
   * Adds the beginning of the call, with the facts that it was decided on. `decide` is called again for each newer state;
   * its result, if any, stops the call.
   */
  begin<T>(tool: Tool, input: unknown, readsRun: boolean, decide: () => T | undefined): MaybePromise<T | undefined> {
    // Most calls are of tools that no rule about runs reads, and have nothing new to add.
    if (!readsRun && this.#beginItems(tool, input, this.#histories.nowMs()).length === 0) return undefined
    return this.#history.enter<T>((nowMs) => decide() ?? this.#beginItems(tool, input, nowMs))
  }

  #beginItems(tool: Tool, input: unknown, nowMs: number): readonly HistoryItem[] {
    const rules = this.#histories.rules as HistoryRules
    const { monitor } = this.#history
    const moment = { event: this.event, nowMs }
    const { labelMs } = monitor.lifetimes
    const { raises, trusted } = this.#histories.labels().of(tool)
    this.#isTrusted = trusted && (!rules.readsOrigin || isFromTrusted(monitor, tool, input, moment.nowMs))
    const items: HistoryItem[] = []
    for (const label of isPassingTool(tool) ? [] : raises)
      items.push(...monitor.itemsFor('label', label, tool.id, moment, labelMs))
    for (const pattern of rules.of(tool)) {
      if (pattern.event !== 'began') continue
      const hash = hashOfTuple(pattern, valuesOf(pattern, { input, output: undefined }))
      if (hash !== undefined) items.push(...monitor.itemsFor('tuple', hash, tool.id, moment, labelMs))
    }
    const notes = monitor.notesFor(rules.keeps, moment.nowMs)
    return notes.length === 0 ? items : [...items, ...notes]
  }

  /** Notes that a call made by this one has already added the output. */
  passedOn(): void {
    this.#hasPassed = true
  }

  /** Adds an output of the call. Wait for the result before anybody gets the output. */
  put(output: unknown): MaybePromise<void> {
    return this.#history.add(this.#textsOf(output))
  }

  /** Adds further labels. Wait for the result before anybody gets the labelled output. */
  raise(tool: Tool, labels: readonly string[]): MaybePromise<void> {
    if (labels.includes(UNTRUSTED)) this.#isTrusted = false
    const { monitor } = this.#history
    const moment = this.#moment()
    const { labelMs } = monitor.lifetimes
    return this.#history.add(labels.flatMap((label) => monitor.itemsFor('label', label, tool.id, moment, labelMs)))
  }

  /** Adds the end of the call, with its last output. */
  end(
    tool: Tool,
    input: unknown,
    { done, output }: { readonly done: boolean; readonly output: unknown },
  ): MaybePromise<void> {
    const items = isPassingTool(tool) && this.#hasPassed ? [] : [...this.#textsOf(output)]
    const rules = this.#histories.rules as HistoryRules
    const { monitor } = this.#history
    if (items.length === 0 && rules.of(tool).length === 0) return
    const moment = this.#moment()
    for (const pattern of done ? rules.of(tool) : []) {
      if (pattern.event !== 'called') continue
      const hash = hashOfTuple(pattern, valuesOf(pattern, { input, output: structuredOf(output) }))
      if (hash !== undefined)
        items.push(...monitor.itemsFor('tuple', hash, tool.id, moment, monitor.lifetimes.calledMs))
    }
    return this.#history.add(items)
  }

  #textsOf(output: unknown): readonly HistoryItem[] {
    if (!this.#histories.rules?.readsOrigin || output === undefined) return []
    const { index } = this.#history.monitor
    return toHistoryItems(index.addOutput(this.#isTrusted ? 'trusted' : 'untrusted', output), this.#histories.nowMs())
  }
}

/** "Nothing found for eve@evil.com" is only as trusted as the address in the input. */
function isFromTrusted(monitor: Monitor, tool: Tool, input: unknown, nowMs: number): boolean {
  const values = withKeys(input, tool, true)
  if (saysNothing(values)) return true
  const origin = monitor.origin(values, nowMs)
  return origin === 'user' || origin === 'trusted'
}

/** Returns the structured part of an output, which rules may read. Excludes text, which anyone may have written. */
export function structuredOf(output: unknown): unknown {
  if (!isObject(output)) return undefined
  return 'content' in output || 'structuredContent' in output ? output['structuredContent'] : output
}
