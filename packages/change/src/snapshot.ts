import { canonicalize, isObject, readOwnJson, toJsonText } from '@toolgate/values/json'
import { checkShape, isErrorOf, shapeOf } from '@toolgate/values'
import { compareToolIds, isOwnTool } from '@toolgate/core/tools'
import { type Catalog, definePrompt, defineResource, defineTemplate, type ItemKind } from '@toolgate/core/toolset'
import { ITEM_KINDS } from '@toolgate/core/words'
import { ConfigError, defineTool, type Tool } from '@toolgate/core'

/** A catalog as data: all that decisions, lists and labels depend on. JSON, sorted by id. */
export interface CatalogSnapshot {
  readonly version: 1
  readonly items: readonly SnapshotItem[]
}

/** A tool, resource, template or prompt, without code, icons and `_meta`. Absent fields have their defaults. */
export type SnapshotItem = Pick<Tool, 'id' | 'name'> & {
  /** Absent: a tool. */
  readonly kind?: Exclude<ItemKind, 'tool'>
} & { readonly [Field in KeptField]?: NonNullable<Tool[Field]> }

type KeptField = Exclude<keyof typeof FIELDS, 'id' | 'name' | 'kind'>

/** The fields of an item, and the kinds that have each when the item is created again. */
const FIELDS = {
  id: [],
  kind: [],
  namespace: ITEM_KINDS,
  name: ITEM_KINDS,
  title: ITEM_KINDS,
  description: ITEM_KINDS,
  tags: ITEM_KINDS,
  category: ITEM_KINDS,
  requiredScopes: ITEM_KINDS,
  labels: ITEM_KINDS,
  trusted: ITEM_KINDS,
  annotations: ITEM_KINDS,
  hintsTrusted: ITEM_KINDS,
  fields: ITEM_KINDS,
  inputSchema: ['tool'],
  outputSchema: ['tool'],
  groups: ['tool'],
  addressees: ['tool'],
  original: ['tool'],
  strict: ['tool'],
  uri: ['resource'],
  mimeType: ['resource', 'template'],
  size: ['resource'],
  arguments: ['prompt'],
} as const satisfies { readonly [Field in keyof Tool]?: readonly ItemKind[] }

const SNAPSHOT = shapeOf<CatalogSnapshot>({ version: true, items: true }, 'field')
const ITEM = shapeOf<SnapshotItem>(
  Object.fromEntries(Object.keys(FIELDS).map((field) => [field, true])) as Record<keyof SnapshotItem, true>,
  'field',
)

/**
 * Returns a catalog as data: the tools, resources, templates and prompts that all callers share, without Toolgate's own
 * tools.
 *
 * @example
 * await writeFile('catalog.json', formatSnapshot(takeSnapshot(gate.catalog)))
 */
export function takeSnapshot(catalog: Pick<Catalog, 'snapshot' | 'items'>): CatalogSnapshot {
  return toSnapshot([...catalog.snapshot(), ...catalog.items()].filter((tool) => !isOwnTool(tool)))
}

/** Returns items as data, in the order of their ids. */
export function toSnapshot(items: readonly Tool[]): CatalogSnapshot {
  return { version: 1, items: items.map(toItem).toSorted((a, b) => compareToolIds(a.id, b.id)) }
}

function toItem(tool: Tool): SnapshotItem {
  const fields = Object.keys(FIELDS) as (keyof typeof FIELDS)[]
  return Object.fromEntries(
    fields.flatMap((field) => (isDefault(field, tool[field]) ? [] : [[field, tool[field]] as const])),
  ) as unknown as SnapshotItem
}

function isDefault(field: keyof typeof FIELDS, value: unknown): boolean {
  if (field === 'hintsTrusted') return value === true
  if (field === 'trusted') return value === false
  if (field === 'kind') return value === 'tool'
  if (field === 'inputSchema') return isObject(value) && Object.keys(value).length === 1 && value['type'] === 'object'
  if (value === undefined || value === '') return true
  return Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0
}

/**
 * Returns the text of a snapshot. Equal snapshots have equal texts, with one line for each value, so that a diff is
 * readable.
 */
export function formatSnapshot(snapshot: CatalogSnapshot): string {
  return `${toJsonText(readOwnJson(canonicalize(snapshot), 'exact'), 2)}\n`
}

/** Runs instead of a tool of a snapshot. */
export type RunStub = (tool: string, input: unknown) => unknown

/**
 * Returns the items of a snapshot, which may be outside data. Their calls run `run`. Default: does nothing.
 *
 * @throws {ConfigError} naming the invalid field, such as `items[3].tags`
 */
export function itemsOfSnapshot(snapshot: unknown, run: RunStub = () => null): readonly Tool[] {
  checkShape('snapshot', snapshot, SNAPSHOT)
  const { version, items } = snapshot as CatalogSnapshot
  if (version !== 1) throw new ConfigError('snapshot.version', `found ${JSON.stringify(version)}, expected 1`)
  if (!Array.isArray(items)) throw new ConfigError('snapshot.items', 'must be a list')
  return items.map((item: SnapshotItem, i) => {
    const path = `snapshot.items[${i}]`
    try {
      checkShape(path, item, ITEM)
      return fromItem(path, item, run)
    } catch (error) {
      if (!isErrorOf(error, ConfigError) || error.path.startsWith(path)) throw error
      throw new ConfigError(path, error.message, { code: error.code as 'tool_invalid', cause: error })
    }
  })
}

function fromItem(path: string, item: SnapshotItem, run: RunStub): Tool {
  const { kind = 'tool', id, hintsTrusted = true } = item
  const parts = Object.entries(FIELDS).flatMap(([field, kinds]: [string, readonly ItemKind[]]) =>
    kinds.includes(kind) ? [[field, item[field as keyof SnapshotItem]] as const] : [],
  )
  const made = makeItem(kind, {
    ...Object.fromEntries(parts),
    hintsTrusted,
    ...(kind === 'template' ? { uriTemplate: item.uri } : { execute: (input: unknown) => run(id, input) }),
  })
  if (made.id !== id) throw new ConfigError(`${path}.id`, `must be ${JSON.stringify(made.id)}, as its name is`)
  return made
}

function makeItem(kind: ItemKind, definition: object): Tool {
  switch (kind) {
    case 'tool':
      return defineTool(definition as Parameters<typeof defineTool>[0])
    case 'resource':
      return defineResource(definition as Parameters<typeof defineResource>[0])
    case 'template':
      return defineTemplate(definition as Parameters<typeof defineTemplate>[0])
    case 'prompt':
      return definePrompt(definition as Parameters<typeof definePrompt>[0])
    default:
      throw new ConfigError('kind', `found ${JSON.stringify(kind)}, expected one of ${ITEM_KINDS.join(', ')}`)
  }
}
