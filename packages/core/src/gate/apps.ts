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
   * Returns the ids of all tools that an app offers, sorted, including tools that a caller cannot see. @throws
   * {ToolgateError} `app_unknown`
   */
  toolsOf(app: string): readonly string[]
  /**
   * Returns the ids of the app's tools, without those that are held back from all callers now.
   * @throws {ToolgateError} `app_unknown`
   */
  availableOf(app: string): readonly string[]
}

/** Returns the apps of a gate, and the host that each app's views use. */
export function createApps(
  appsNow: () => ReadonlyMap<string, ParsedApp>,
  today: Today<BuiltPolicySnapshot>,
  world: World,
): { readonly apps: Apps; hostOf(app: string, host: ViewHost): ViewHost } {
  const snapshots = new WeakMap<ParsedApp, Today<BuiltPolicySnapshot>>()
  const latestOf = (app: ParsedApp): Today<BuiltPolicySnapshot> => {
    let latest = snapshots.get(app)
    if (!latest) snapshots.set(app, (latest = createAppPolicySnapshots(today, app, world)))
    return latest
  }
  const find = (name: string): { app: ParsedApp; latest: Today<BuiltPolicySnapshot> } => {
    const app = appsNow().get(name)
    if (!app) throw unknownApp(name, appsNow())
    return { app, latest: latestOf(app) }
  }
  let listed: { readonly of: object; readonly list: readonly AppInfo[] } | undefined
  return {
    apps: {
      get list() {
        const of = appsNow()
        if (listed?.of !== of) listed = { of, list: Object.freeze([...of.values()].map(({ info }) => info)) }
        return listed.list
      },
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
    hostOf(name, host) {
      const gone = toGone(find(name).app)
      // After an app is removed, its views show no tools.
      return { ...host, app: name, today: (caller) => latestOf(appsNow().get(name) ?? gone)(caller) }
    },
  }
}

function toGone(app: ParsedApp): ParsedApp {
  return { ...app, imports: [], own: [], policies: [] }
}
