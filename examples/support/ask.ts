/** What a server answered; `body` is parsed if it is JSON. */
export interface Answered<Body> {
  readonly status: number
  readonly body: Body
}

/** Sends a request as a client of the server would: a POST with this JSON, or a GET without. */
export async function ask<Body = unknown>(
  url: string,
  { token, json, headers = {} }: { token?: string; json?: object; headers?: Record<string, string> },
): Promise<Answered<Body>> {
  const response = await fetch(url, {
    method: json ? 'POST' : 'GET',
    headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }), ...headers },
    body: json ? JSON.stringify(json) : null,
  })
  return { status: response.status, body: parse(await response.text()) as Body }
}

/** By the text: some servers send JSON as a stream without saying so. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
