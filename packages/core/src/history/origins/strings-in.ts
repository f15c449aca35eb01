import { outputText, sizeOf } from '@toolgate/values'
import { isPlain } from '@toolgate/values/json'

/**
 * Returns all texts of an output, with field names, and numbers as text. Returns `undefined` if the output has more than
 * `maxChars`.
 *
 * Images and sounds of an MCP result are left out, because a model does not see their base64.
 */
export function stringsIn(output: unknown, maxChars: number): ReadonlySet<string> | undefined {
  try {
    const value = withoutMedia(output)
    // A circular or endlessly nested value is too large.
    if (sizeOf(value, maxChars) > maxChars) return undefined
    const texts = new Set<string>()
    collect(value, texts, maxChars)
    return texts
  } catch {
    // A getter throws.
    return undefined
  }
}

function collect(value: unknown, texts: Set<string>, maxChars: number): void {
  if (typeof value === 'string') texts.add(value)
  else if (Array.isArray(value)) for (const item of value) collect(item, texts, maxChars)
  else if (isPlain(value) && typeof value['toJSON'] !== 'function') {
    for (const [key, item] of Object.entries(value)) {
      texts.add(key)
      collect(item, texts, maxChars)
    }
  } else if (value !== null && value !== undefined && typeof value !== 'boolean') texts.add(outputText(value, maxChars))
}

/** Shorter data could be an account number declared as an image. */
const MIN_MEDIA = 1000
const BASE64 = /^[\w+/-]+={0,2}$/

function withoutMedia(output: unknown): unknown {
  if (!isPlain(output)) return output
  const { content, contents } = output
  if (!Array.isArray(content) && !Array.isArray(contents)) return output
  return { ...output, content: itemsWithoutMedia(content), contents: itemsWithoutMedia(contents) }
}

function itemsWithoutMedia(items: unknown): unknown {
  return Array.isArray(items) ? items.map((item) => (isPlain(item) ? itemWithoutMedia(item) : item)) : items
}

function itemWithoutMedia(item: Readonly<Record<string, unknown>>): unknown {
  const { type, data, blob, resource } = item
  if ((type === 'image' || type === 'audio') && isMedia(data)) return { ...item, data: undefined }
  if (typeof item['mimeType'] === 'string' && isMedia(blob)) return { ...item, blob: undefined }
  return isPlain(resource) && type === 'resource' ? { ...item, resource: itemWithoutMedia(resource) } : item
}

function isMedia(data: unknown): boolean {
  return typeof data === 'string' && data.length >= MIN_MEDIA && BASE64.test(data)
}
