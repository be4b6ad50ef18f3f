/** For tests: answers and faults with the key in them, where an answer can hold it. */
export function effectsThatRepeat(sentinel: string): readonly object[] {
  const message = `you sent xi-api-key: ${sentinel} (${encodeURIComponent(sentinel)})`;
  const answer = (status: number, body: object): object => ({ kind: "answer", status, ...body });
  const statuses = [400, 401, 402, 403, 404, 409, 422, 429, 500, 503];
  return [
    ...statuses.map((status) => answer(status, { json: { detail: { status: "odd", message } } })),
    ...statuses.map((status) => answer(status, { text: `<html>${message}</html>` })),
    answer(422, { json: { detail: [{ loc: ["body", sentinel], msg: message, type: "x" }] } }),
    answer(401, { json: { detail: message } }),
    answer(404, { json: { detail: { status: sentinel, message, type: "not_found" } } }),
    answer(401, { json: { detail: { status: "odd", message: `what is ${sentinel} for?` } } }),
    answer(200, { text: message }),
    answer(302, { headers: { location: `https://other.example/?key=${sentinel}` } }),
    { kind: "reset" },
    { kind: "cut" },
  ];
}
