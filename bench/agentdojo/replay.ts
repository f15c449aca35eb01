import { ADAPTIVE, type Attacker, harmless, infected, PLAIN, type Shown, textsIn } from './attackers.ts'
import type { Goal, Suite, Task } from './traces.ts'
import type { OpenRun, OpenWay, Rules, Way } from './way.ts'

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

/** Replays a suite through a gate: its harmless tasks, and each of them with each attack. */
export async function replaySuite(suite: Suite, rules: Rules, openWay: OpenWay): Promise<SuiteResult> {
  const way = await openWay(suite, rules)
  try {
    return await replay(new Agent(suite, rules, way), suite)
  } finally {
    await way.close()
  }
}

async function replay(agent: Agent, suite: Suite): Promise<SuiteResult> {
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
  readonly #way: Way
  readonly #trusted: readonly { readonly name: string; readonly fields: readonly string[] }[]

  constructor(suite: Suite, rules: Rules, way: Way) {
    this.#suite = suite
    this.#rules = rules
    this.#way = way
    const { trusted } = rules.labels
    this.#trusted = suite.tools
      .filter(({ name }) => trusted.some((selector) => isNamed(selector, `${suite.name}:${name}`)))
      .map(({ name, inputSchema }) => ({ name, fields: textFieldsOf(inputSchema) }))
      .filter(({ fields }) => fields.length > 0)
  }

  /** Returns how many questions a harmless task costs. */
  async work(task: Task): Promise<number> {
    const run = await this.#start(task)
    let questions = 0
    for (const step of harmless(task)) if (await call(run, step.tool, step.input, step, 'approve')) questions++
    await run.end()
    return questions
  }

  async attack(task: Task, goal: Goal, attacker: Attacker): Promise<boolean> {
    const steps = infected(task, goal, attacker)
    if (!steps) return false
    const run = await this.#start(task)
    for (const step of steps) await call(run, step.tool, step.input, step, 'approve')
    if (attacker.echoes) await this.#echo(run, goal, attacker.echoes === 'as errors')
    let ran = 0
    for (const [i, { tool, input, result }] of goal.calls.entries()) {
      const asked = await call(run, tool, input, { text: result, isError: false }, 'reject')
      if (!asked) ran |= 1 << i
    }
    await run.end()
    return goal.succeedsWith.includes(ran)
  }

  /** Each trusted tool is asked about each value of the attack, and repeats it. */
  async #echo(run: OpenRun, goal: Goal, isError: boolean): Promise<void> {
    for (const value of goal.calls.flatMap(({ input }) => textsIn(input))) {
      for (const { name, fields } of this.#trusted) {
        const input = Object.fromEntries(fields.map((field) => [field, value]))
        await call(run, name, input, { text: `Nothing found for ${value}`, isError }, 'reject')
      }
    }
  }

  #start({ steps, prompt }: Task): Promise<OpenRun> {
    const { hasOracle, hasWords } = this.#rules
    const own = [...new Set(steps.map(({ tool }) => `${this.#suite.name}:${tool}`))]
    return this.#way.start({ ...(hasWords && { words: prompt }), ...(hasOracle && { tools: own }) })
  }
}

/** Returns `true` if the call did not run by itself: a person was asked, or it was refused. */
async function call(run: OpenRun, tool: string, input: unknown, shown: Shown, verdict: 'approve' | 'reject') {
  const first = await run.call(tool, input, shown)
  if (first.status === 'done') return false
  if (first.status === 'refused') {
    if (verdict === 'approve') throw new Error(`${tool} of a harmless task: ${first.text}`)
    return true
  }
  await first.decide(verdict)
  if (verdict === 'approve') {
    const again = await run.call(tool, input, shown)
    if (again.status !== 'done') throw new Error(`${tool} was approved: ${again.text}`)
  }
  return true
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
