import { type AppInfo, type ParsedApp, unknownApp } from './apps/app.ts'
import { createAppEpochs } from './decide/app-epoch.ts'
import type { MadeEpoch, World } from './decide/epoch.ts'
import { rule } from './decide/ruling.ts'
import { appMarks } from './layers/app.ts'
import type { ViewHost } from './view.ts'

/** The apps of a gate. */
export interface Apps {
  readonly list: readonly AppInfo[]
  /** Every tool that an app offers, in the order of their ids, whoever may see it. @throws {ToolgateError} `app_unknown` */
  toolsOf(app: string): readonly string[]
  /** Those of them that nothing holds back from everybody now. @throws {ToolgateError} `app_unknown` */
  availableOf(app: string): readonly string[]
}

/** Gives the apps of a gate, and what the views of each ask. */
export function createApps(
  parsed: ReadonlyMap<string, ParsedApp>,
  today: () => MadeEpoch,
  world: World,
): { readonly apps: Apps; hostOf(app: string, host: ViewHost): ViewHost } {
  const epochs = new Map([...parsed].map(([name, app]) => [name, createAppEpochs(today, app, world)]))
  const find = (name: string): { app: ParsedApp; epoch: () => MadeEpoch } => {
    const app = parsed.get(name)
    const epoch = epochs.get(name)
    if (!app || !epoch) throw unknownApp(name, parsed)
    return { app, epoch }
  }
  return {
    apps: {
      list: Object.freeze([...parsed.values()].map(({ info }) => info)),
      toolsOf(name) {
        const { app, epoch } = find(name)
        const { snapshot } = epoch()
        return rule(snapshot, appMarks(snapshot, app)).listing.ids
      },
      availableOf(name) {
        const { app, epoch } = find(name)
        const { snapshot, heldBack } = epoch()
        return rule(snapshot, [...appMarks(snapshot, app), ...heldBack]).listing.ids
      },
    },
    hostOf: (name, host) => ({ ...host, app: name, today: find(name).epoch }),
  }
}
