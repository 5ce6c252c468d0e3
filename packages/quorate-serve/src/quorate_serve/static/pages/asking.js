// Requests of pages to the service: what goes wrong becomes an Error with words for people.

const csrf = () => document.querySelector('meta[name="csrf-token"]')?.content || "";

/**
 * @param {string} method
 * @param {string} url
 * @param {unknown} [body]
 * @returns {Promise<any>} what was answered
 */
export async function ask(method, url, body) {
  let answer;
  try {
    answer = await fetch(url, {
      method,
      headers: { "X-CSRF-Token": csrf(), ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Error(navigator.onLine ? "The service is not reachable" : "You are offline");
  }
  if (answer.status === 401) {
    location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
    throw new Error("You are logged out");
  }
  const content = answer.status === 204 ? null : await answer.json().catch(() => null);
  if (!answer.ok) throw new Error(content?.error?.message || `The service answers ${answer.status}`);
  return content;
}
