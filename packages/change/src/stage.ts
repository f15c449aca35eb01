import { defineResource, type Source } from '@toolgate/core/toolset'
import { defineTool, type Tool } from '@toolgate/core'
import { type CatalogSnapshot, itemsOfSnapshot, type RunStub, toSnapshot } from './snapshot.ts'

/** The catalog that policies are tested on: a snapshot, or items. Their own code never runs. */
export type StagedCatalog = CatalogSnapshot | readonly Tool[]

/** Finds the resource with a URI, although its server does not list it. */
export type FindUnlisted = (server: string, uri: string) => Tool | undefined

/** The items of a catalog, with stubs instead of their own code. */
export interface Stage {
  readonly items: readonly Tool[]
  readonly sources: readonly Source[]
  /** Runs instead of each item's code. */
  run: RunStub
}

/** Creates a stage. Its sources are dynamic, so a rule about an unknown tool is a warning, as in a gateway. */
export function createStage(
  catalog: StagedCatalog,
  findUnlisted: FindUnlisted = (namespace, uri) => defineResource({ namespace, uri }),
): Stage {
  const run: RunStub = (tool, input) => stage.run(tool, input)
  const items = isList(catalog) ? catalog.map((tool) => withStub(tool, run)) : itemsOfSnapshot(catalog, run)
  const stage: Stage = { items, sources: toSources(items, findUnlisted, run), run: () => null }
  return stage
}

function isList(catalog: StagedCatalog): catalog is readonly Tool[] {
  return Array.isArray(catalog)
}

/** Keeps the validation of a Standard Schema, which data cannot represent. */
function withStub(tool: Tool, run: RunStub): Tool {
  if (tool.kind === 'tool') return defineTool({ ...tool, execute: (input: unknown) => run(tool.id, input) })
  return itemsOfSnapshot(toSnapshot([tool]), run)[0] as Tool
}

/** One source for each namespace, because each may have unlisted resources. */
function toSources(items: readonly Tool[], findUnlisted: FindUnlisted, run: RunStub): readonly Source[] {
  const bySource = Map.groupBy(items, ({ namespace = '' }) => namespace)
  return [...bySource].map(([namespace, own]) => ({
    name: namespace === '' ? 'tools' : namespace,
    namespaces: [namespace],
    tools: () => own,
    subscribe: () => () => {},
    isListed: () => true,
    unlisted: (uri) => {
      if (!own.some(({ kind }) => kind === 'resource' || kind === 'template')) return undefined
      const found = findUnlisted(namespace, uri)
      return found && withStub(found, run)
    },
  }))
}
