// Rows of types of spans: one more when it is asked for.

const add = document.getElementById("add-type");
const rows = document.getElementById("types");
add.hidden = false;
add.addEventListener("click", () => {
  const row = document.getElementById("type-row").content.cloneNode(true);
  const name = row.querySelector("input");
  const number = rows.children.length + 1;
  for (const field of row.querySelectorAll("[aria-label]")) field.setAttribute("aria-label", `${field.getAttribute("aria-label")} ${number}`);
  rows.append(row);
  name.focus();
});
