import { type AppInfo, type ParsedApp, unknownApp } from '../groups/app.ts'
import {
  createAppPolicySnapshots,
  type BuiltPolicySnapshot,
  type Today,
  type World,
} from '../decide/policy-snapshot.ts'
import { evaluate } from '../decide/evaluation.ts'
import { appEffects } from '../decide/layers/app.ts'
import type { ViewHost } from './view.ts'

/** The apps of a gate. */
export interface Apps {
  readonly list: readonly AppInfo[]
  /**
   * Every tool that an app offers, in the order of their ids, visible to a caller or not. @throws {ToolgateError}
   * `app_unknown`
   */
  toolsOf(app: string): readonly string[]
  /** Those of them that nothing holds back from everybody now. @throws {ToolgateError} `app_unknown` */
  availableOf(app: string): readonly string[]
}

/** Returns the apps of a gate, and what the views of each ask. */
export function createApps(
  parsed: ReadonlyMap<string, ParsedApp>,
  today: Today<BuiltPolicySnapshot>,
  world: World,
): { readonly apps: Apps; hostOf(app: string, host: ViewHost): ViewHost } {
  const snapshots = new Map([...parsed].map(([name, app]) => [name, createAppPolicySnapshots(today, app, world)]))
  const find = (name: string): { app: ParsedApp; latest: Today<BuiltPolicySnapshot> } => {
    const app = parsed.get(name)
    const latest = snapshots.get(name)
    if (!app || !latest) throw unknownApp(name, parsed)
    return { app, latest }
  }
  return {
    apps: {
      list: Object.freeze([...parsed.values()].map(({ info }) => info)),
      toolsOf(name) {
        const { app, latest } = find(name)
        const { snapshot } = latest()
        return evaluate(snapshot, appEffects(snapshot, app)).visible.ids
      },
      availableOf(name) {
        const { app, latest } = find(name)
        const { snapshot, heldBack } = latest()
        return evaluate(snapshot, [...appEffects(snapshot, app), ...heldBack]).visible.ids
      },
    },
    hostOf: (name, host) => ({ ...host, app: name, today: find(name).latest }),
  }
}
