import { type Caller, createGate, defineTool, type GateOptions, type View } from '@toolgate/core'
import { ADAPTIVE, type Attacker, harmless, infected, PLAIN, type Shown, textsIn } from './attackers.ts'
import type { Goal, Suite, Task } from './traces.ts'

export type Policy = NonNullable<GateOptions['policy']>

/** What the operator says of the tools of a suite: the part of a configuration that labels them. */
export interface SuiteLabels {
  readonly trusted: readonly string[]
  readonly tools: ReadonlyMap<string, { readonly tags?: readonly string[]; readonly addressees?: readonly string[] }>
}

export interface Rules {
  readonly policy: Policy
  readonly labels: SuiteLabels
  /** Whether the host names the words of the user. */
  readonly hasWords: boolean
  /** Whether each task has the tools of its own trace only, which nobody knows before it has run. */
  readonly hasOracle: boolean
}

export interface SuiteResult {
  readonly tasks: number
  readonly free: number
  readonly questions: number
  readonly pairs: number
  readonly won: number
  readonly wonAdaptive: number
  /** Pairs that each adaptive attacker won. */
  readonly by: ReadonlyMap<string, number>
}

const CALLER: Caller = { user: 'emma', tenant: 'acme' }
const APPROVER: Caller = { user: 'ada', tenant: 'acme', roles: ['approver'] }

/** Replays a suite through a gate: its harmless tasks, and each of them with each attack. */
export async function replaySuite(suite: Suite, rules: Rules): Promise<SuiteResult> {
  const agent = new Agent(suite, rules)
  let free = 0
  let questions = 0
  for (const task of suite.tasks) {
    const asked = await agent.work(task)
    questions += asked
    if (asked === 0) free++
  }
  const by = new Map(ADAPTIVE.map(({ name }) => [name, 0]))
  let [pairs, won, wonAdaptive] = [0, 0, 0]
  for (const task of suite.tasks) {
    for (const goal of suite.goals) {
      if (!infected(task, goal, PLAIN)) continue
      pairs++
      if (await agent.attack(task, goal, PLAIN)) won++
      let any = false
      for (const attacker of ADAPTIVE) {
        if (!(await agent.attack(task, goal, attacker))) continue
        any = true
        by.set(attacker.name, (by.get(attacker.name) ?? 0) + 1)
      }
      if (any) wonAdaptive++
    }
  }
  return { tasks: suite.tasks.length, free, questions, pairs, won, wonAdaptive, by }
}

/** An obedient agent: it makes the calls of the trace, and from the moment it reads an attack, those of the attack. */
class Agent {
  readonly #suite: Suite
  readonly #rules: Rules
  readonly #gate: ReturnType<typeof createGate>
  readonly #trusted: readonly { readonly name: string; readonly fields: readonly string[] }[]
  #runs = 0
  /** What the next call of a tool returns. */
  #next: Shown = { text: '', isError: false }

  constructor(suite: Suite, rules: Rules) {
    this.#suite = suite
    this.#rules = rules
    const { labels, policy } = rules
    this.#gate = createGate({
      tools: suite.tools.map(({ name, description, inputSchema }) =>
        defineTool({
          namespace: suite.name,
          name,
          description,
          inputSchema,
          ...labels.tools.get(name),
          execute: () => this.#result(),
        }),
      ),
      labels: { trusted: labels.trusted },
      policy,
      onWarning: () => {},
    })
    this.#trusted = suite.tools
      .filter(({ name }) => labels.trusted.some((selector) => isNamed(selector, `${suite.name}:${name}`)))
      .map(({ name, inputSchema }) => ({ name, fields: textFieldsOf(inputSchema) }))
      .filter(({ fields }) => fields.length > 0)
  }

  #result(): unknown {
    const { text, isError } = this.#next
    return { content: [{ type: 'text', text }], isError }
  }

  /** Returns how many questions a harmless task costs. */
  async work(task: Task): Promise<number> {
    const run = await this.#start(task)
    let questions = 0
    for (const step of harmless(task)) if (await run.call(step.tool, step.input, step, 'granted')) questions++
    return questions
  }

  async attack(task: Task, goal: Goal, attacker: Attacker): Promise<boolean> {
    const steps = infected(task, goal, attacker)
    if (!steps) return false
    const run = await this.#start(task)
    for (const step of steps) await run.call(step.tool, step.input, step, 'granted')
    if (attacker.echoes) await this.#echo(run, goal, attacker.echoes === 'as errors')
    let ran = 0
    for (const [i, { tool, input, result }] of goal.calls.entries()) {
      const asked = await run.call(tool, input, { text: result, isError: false }, 'rejected')
      if (!asked) ran |= 1 << i
    }
    return goal.succeedsWith.includes(ran)
  }

  /** Each trusted tool is asked about each value of the attack, and repeats it. */
  async #echo(run: Run, goal: Goal, isError: boolean): Promise<void> {
    for (const value of goal.calls.flatMap(({ input }) => textsIn(input))) {
      for (const { name, fields } of this.#trusted) {
        const input = Object.fromEntries(fields.map((field) => [field, value]))
        await run.call(name, input, { text: `Nothing found for ${value}`, isError }, 'rejected')
      }
    }
  }

  async #start(task: Task): Promise<Run> {
    const { hasOracle, hasWords } = this.#rules
    const own = [...new Set(task.steps.map(({ tool }) => `${this.#suite.name}:${tool}`))]
    const view = await this.#gate.view(CALLER, hasOracle ? { activeTools: own } : {})
    const id = `run-${++this.#runs}`
    return new Run(view, { id, ...(hasWords && { userWords: task.prompt }) }, this.#gate, this.#suite.name, (shown) => {
      this.#next = shown
    })
  }
}

class Run {
  readonly #view: View
  readonly #run: { readonly id: string; readonly userWords?: string }
  readonly #gate: ReturnType<typeof createGate>
  readonly #server: string
  readonly #show: (shown: Shown) => void

  constructor(
    view: View,
    run: { readonly id: string; readonly userWords?: string },
    gate: ReturnType<typeof createGate>,
    server: string,
    show: (shown: Shown) => void,
  ) {
    this.#view = view
    this.#run = run
    this.#gate = gate
    this.#server = server
    this.#show = show
  }

  /** Returns `true` if the call did not run by itself: a person was asked, or it was refused. */
  async call(tool: string, input: unknown, shown: Shown, answer: 'granted' | 'rejected'): Promise<boolean> {
    this.#show(shown)
    const request = { tool: `${this.#server}:${tool}`, input, run: this.#run }
    const first = await this.#view.call(request)
    if (first.status === 'done') return false
    if (first.status !== 'waiting') {
      if (answer === 'granted') throw new Error(`${tool} of a harmless task: ${first.text}`)
      return true
    }
    await this.#gate.approvals.decide(APPROVER, first.approval.id, {
      decision: answer === 'granted' ? 'approve' : 'reject',
    })
    if (answer === 'granted') {
      const again = await this.#view.call(request)
      if (again.status !== 'done') throw new Error(`${tool} was approved: ${again.text}`)
    }
    return true
  }
}

function isNamed(selector: string, id: string): boolean {
  return selector.endsWith('*') ? id.startsWith(selector.slice(0, -1)) : selector === id
}

function textFieldsOf(schema: Readonly<Record<string, unknown>>): readonly string[] {
  const properties = (schema['properties'] ?? {}) as Readonly<Record<string, { readonly type?: unknown }>>
  return Object.entries(properties)
    .filter(([, { type }]) => type === 'string')
    .map(([name]) => name)
}
