const CHUNK_LENGTH = 32 * 1024
const encoder = new TextEncoder()

interface StreamHead {
  /** The media type. */
  readonly type: string
  /** The name of the file. */
  readonly name: string
  /** A text before the items. */
  readonly head?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Returns an answer that writes items as text while they are read. */
export function streamText<Item>(
  items: AsyncIterable<Item>,
  toText: (item: Item) => string,
  { type, name, head = '', headers = {} }: StreamHead,
): Response {
  return new Response(toStream(toChunks(items, toText, head)), {
    headers: { ...headers, 'content-type': type, 'content-disposition': `attachment; filename="${name}"` },
  })
}

/** Yields several items at a time, since a chunk for each item would be slow. */
async function* toChunks<Item>(
  items: AsyncIterable<Item>,
  toText: (item: Item) => string,
  head: string,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void> {
  let text = head
  for await (const item of items) {
    text += toText(item)
    if (text.length < CHUNK_LENGTH) continue
    yield encoder.encode(text)
    text = ''
  }
  if (text !== '') yield encoder.encode(text)
}

/** Like `ReadableStream.from`, which the browser types lack. */
function toStream(chunks: AsyncGenerator<Uint8Array<ArrayBuffer>, void>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await chunks.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    async cancel() {
      await chunks.return()
    },
  })
}
