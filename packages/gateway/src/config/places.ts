import type { ConfigPath, ConfigPlace } from './problems.ts'
import type { Source, SourceNode } from './source.ts'

/** Where policies, their lists and their clauses are written, by the paths of reasons, such as `policy[0].deny[1]`. */
export type ConfigPlaces = ReadonlyMap<string, ConfigPlace>

/** Returns the places of the policies of the gateway and of its apps. */
export function findPlaces(source: Source): ConfigPlaces {
  const places = new Map<string, ConfigPlace>()
  const add = (text: string, at: ConfigPath) => {
    const place = source.placeOf(at)
    if (place) places.set(text, place)
    return source.get(at)
  }
  const addPolicies = (text: string, at: ConfigPath) => {
    for (const i of indexes(source.get(at))) {
      const [policy, policyAt] = [`${text}[${i}]`, [...at, i]]
      for (const list of add(policy, policyAt)?.entries?.keys() ?? []) {
        const [lists, listAt] = [`${policy}.${list}`, [...policyAt, list]]
        for (const j of indexes(add(lists, listAt))) add(`${lists}[${j}]`, [...listAt, j])
      }
    }
  }
  addPolicies('policy', ['policy'])
  // As core writes the paths of an app.
  for (const name of source.get(['apps'])?.entries?.keys() ?? [])
    addPolicies(`apps.${name}.policy`, ['apps', name, 'policy'])
  return places
}

function indexes(node: SourceNode | undefined): Iterable<number> {
  return node?.items?.keys() ?? []
}
