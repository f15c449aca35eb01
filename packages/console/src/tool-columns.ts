import type { ItemKind, ToolColumns, ToolColumnsBody, ToolRow, ToolsBody } from './wire.ts'

/** The rows of each list, cached so that a row is the same object while its list does not change. */
const known = new WeakMap<ToolColumns, readonly ToolRow[]>()

/** Returns the list with its items as rows. */
export function toToolsBody({ columns, ...body }: ToolColumnsBody): ToolsBody {
  let tools = known.get(columns)
  if (!tools) known.set(columns, (tools = toRows(columns, body.kind)))
  return { ...body, tools }
}

export function toRows(columns: ToolColumns, kind: ItemKind): readonly ToolRow[] {
  const { decisions, tagSets, id: ids, description, decision, tags, wireName, title, hash } = columns
  return ids.map((id, i) => {
    const [decided, tagSet] = [decisions[decision[i] ?? -1], tagSets[tags[i] ?? -1]]
    if (!decided || !tagSet) throw new TypeError('The gateway has sent columns of different lengths.')
    return {
      id,
      kind,
      wireName: wireName?.[i] ?? id.replace(':', '__'),
      ...(title?.[i] ? { title: title[i] } : {}),
      description: description[i] ?? '',
      ...(hash?.[i] ? { hash: hash[i] } : {}),
      tags: tagSet,
      ...decided,
    }
  })
}
