import { readJson, readUtf8 } from '@toolgate/values/json'

/** Why an authorization server returned no usable answer. */
export class IssuerError extends Error {
  override readonly name = 'IssuerError'
}

interface JsonAnswer {
  readonly status: number
  /** Absent unless the answer is JSON. */
  readonly body?: unknown
}

const TIMEOUT_MS = 5_000
const MAX_BYTES = 512 * 1024

/**
 * Returns the JSON answer of an authorization server. It does not follow redirects and reads at most 512 KiB in 5 s.
 *
 * @throws {IssuerError}
 */
export async function fetchJson(
  url: string,
  init: Pick<RequestInit, 'method' | 'headers' | 'body'> = {},
): Promise<JsonAnswer> {
  try {
    const response = await fetch(url, {
      ...init,
      headers: { accept: 'application/json', ...(init.headers as Record<string, string> | undefined) },
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    return { status: response.status, ...toBody(await readBytes(response)) }
  } catch (error) {
    if (error instanceof IssuerError) throw error
    const isLate = error instanceof Error && error.name === 'TimeoutError'
    throw new IssuerError(isLate ? `${url} did not answer within ${TIMEOUT_MS} ms` : `${url} cannot be reached`, {
      cause: error,
    })
  }
}

async function readBytes(response: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > MAX_BYTES) throw new IssuerError(`${response.url} answered more than ${MAX_BYTES} bytes`)
    chunks.push(chunk as Uint8Array)
  }
  return Buffer.concat(chunks)
}

function toBody(bytes: Uint8Array): { readonly body?: unknown } {
  try {
    return { body: readJson(readUtf8(bytes)) }
  } catch {
    return {}
  }
}
