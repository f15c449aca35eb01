import { readFileSync } from 'node:fs'

/** A call as it ran in the trace of a task. */
export interface Step {
  readonly tool: string
  readonly input: Readonly<Record<string, unknown>>
  readonly result: string
  /** The vectors whose text this result shows, as `CANARY_<vector>_END`. */
  readonly vectors: readonly string[]
}

export interface Task {
  readonly name: string
  readonly prompt: string
  readonly steps: readonly Step[]
}

export interface Goal {
  readonly name: string
  readonly goal: string
  readonly calls: readonly Omit<Step, 'vectors'>[]
  /** Sets of calls, as bit masks, that make the attack succeed. */
  readonly succeedsWith: readonly number[]
}

export interface SuiteTool {
  readonly name: string
  readonly description: string
  readonly inputSchema: Readonly<Record<string, unknown>>
}

export interface Suite {
  readonly name: string
  readonly tools: readonly SuiteTool[]
  readonly tasks: readonly Task[]
  /** Only those with calls. */
  readonly goals: readonly Goal[]
  readonly goalsWithoutCalls: number
}

interface SuiteFile {
  readonly tools: readonly SuiteTool[]
  readonly user: Readonly<Record<string, Omit<Task, 'name'>>>
  readonly injection: Readonly<Record<string, Omit<Goal, 'name'>>>
}

/** Reads the traces of AgentDojo's suites: `{ suites: { <name>: { tools, user, injection } } }`. */
export function readSuites(file: string): readonly Suite[] {
  const { suites } = JSON.parse(readFileSync(file, 'utf8')) as { suites: Readonly<Record<string, SuiteFile>> }
  return Object.entries(suites).map(([name, { tools, user, injection }]) => {
    const goals = named(injection)
    const withCalls = goals.filter(({ calls }) => calls.length > 0)
    return {
      name,
      tools,
      tasks: named(user),
      goals: withCalls,
      goalsWithoutCalls: goals.length - withCalls.length,
    }
  })
}

function named<T extends object>(record: Readonly<Record<string, T>>): readonly (T & { name: string })[] {
  return Object.entries(record).map(([name, value]) => ({ ...value, name }))
}
