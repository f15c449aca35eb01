import type { Policy } from '@toolgate/core'
import type { Shown } from './attackers.ts'
import type { Suite } from './traces.ts'

/** The part of a configuration that labels the tools of a suite. */
export interface SuiteLabels {
  readonly trusted: readonly string[]
  readonly tools: ReadonlyMap<string, { readonly tags?: readonly string[]; readonly addressees?: readonly string[] }>
}

export interface Rules {
  readonly policy: readonly Policy[]
  readonly labels: SuiteLabels
  /** Whether the host names the words of the user. */
  readonly hasWords: boolean
  /** Whether each task has the tools of its own trace only, which nobody knows before it has run. */
  readonly hasOracle: boolean
}

/** How the agent's calls come to a gate. */
export interface Way {
  /** `words`: of the user, where the host names them. `tools`: the ids of the only ones that the run has. */
  start(run: { readonly words?: string; readonly tools?: readonly string[] }): Promise<OpenRun>
  close(): Promise<void>
}

export interface OpenRun {
  /** Calls a tool, which returns `shown` if it runs. */
  call(tool: string, input: unknown, shown: Shown): Promise<Answer>
  end(): Promise<void>
}

export type Answer =
  | { readonly status: 'done' }
  | { readonly status: 'refused'; readonly text: string }
  | { readonly status: 'waiting'; readonly text: string; decide(decision: 'approve' | 'reject'): Promise<void> }

export type OpenWay = (suite: Suite, rules: Rules) => Promise<Way>
