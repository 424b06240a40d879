# What a model would write: read the uploaded table, sum it up, draw it.
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd

table = pd.read_csv("data.csv")
totals = table.groupby("city")["value"].sum()
for city, value in totals.items():
    print(city, value)
figure = plt.figure(figsize=(6.4, 4.8), dpi=100)
totals.plot(kind="bar", title="Value by city", rot=0)
plt.tight_layout()
plt.savefig("chart.png", metadata={"Software": None})
