import type { Tool } from '@toolgate/core'
import type { JsonObject } from '@toolgate/values/json'

/** Returns a resource, a template or a prompt as MCP lists it. `name` replaces the name of a prompt. */
export function toListedItem(item: Tool, name: string = item.name): JsonObject {
  const { kind, title, description, annotations, icons, _meta, mimeType, size, fields, uri } = item
  return {
    ...fields,
    ...(kind === 'resource' ? { uri } : kind === 'template' ? { uriTemplate: uri } : {}),
    name,
    ...(title === undefined ? {} : { title }),
    ...(description === '' ? {} : { description }),
    ...(mimeType === undefined ? {} : { mimeType }),
    ...(size === undefined ? {} : { size }),
    ...(kind === 'prompt' && item.arguments ? { arguments: item.arguments } : {}),
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    ...(icons && { icons }),
    ...(_meta && { _meta }),
  }
}
